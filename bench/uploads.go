package bench

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"docket/sample"
)

// OPAUpload is OPA's default upload_size_limit_bytes: how large an upload is, gzipped.
const OPAUpload = 32 << 10

// collectSmall is how many decisions a small upload has.
const collectSmall = 5

// Upload is one body as OPA posts it: a gzipped JSON array.
type Upload struct {
	Body      []byte
	Decisions int
}

// Real are decision logs of the sample, again and again, each time with ids of their own by seed.
func Real(seed uint64, n int) (made [][]byte, err error) {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	logs := sample.DecisionLogs()
	for i := 0; len(made) < n; i++ {
		log := logs[i%len(logs)]
		var was struct {
			ID string `json:"decision_id"`
		}
		if err := json.Unmarshal(log, &was); err != nil || was.ID == "" {
			return nil, fmt.Errorf("decision %d of the sample cannot be read: %w", i%len(logs), err)
		}
		var id [16]byte
		binary.LittleEndian.PutUint64(id[:], rng.Uint64())
		binary.LittleEndian.PutUint64(id[8:], rng.Uint64())
		h := hex.EncodeToString(id[:])
		made = append(made, bytes.Replace(log, []byte(was.ID), []byte(h[:8]+"-"+h[8:12]+"-4"+h[13:16]+"-a"+h[17:20]+"-"+h[20:]), 1))
	}
	return made, nil
}

// Uploads packs decisions as OPA does: so many that a body comes near a size, or a fixed number of them where each is above 0.
func Uploads(logs [][]byte, size, each int) (made []Upload, err error) {
	n := each
	if n == 0 {
		n = 100
	}
	for len(logs) > 0 {
		n = min(n, len(logs))
		body, err := zipped(logs[:n])
		if err != nil {
			return nil, err
		}
		made = append(made, Upload{body, n})
		logs = logs[n:]
		if each == 0 { // OPA too guesses from what came out last
			n = max(1, n*size/len(body))
		}
	}
	return made, nil
}

func zipped(logs [][]byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	before := "["
	for _, log := range logs {
		if _, err := z.Write(append([]byte(before), log...)); err != nil {
			return nil, err
		}
		before = ","
	}
	if _, err := z.Write([]byte("]")); err != nil {
		return nil, err
	}
	err := z.Close()
	return out.Bytes(), err
}
