package kafka

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// plainSet is a set of n records of seven bytes without compression.
func plainSet(n int) []byte {
	set := kmsg.NewRecordBatch()
	set.Magic, set.NumRecords = 2, int32(n)
	set.Records = bytes.Repeat([]byte{12, 0, 0, 0, 1, 1, 0}, n)
	all := set.AppendTo(nil)
	binary.BigEndian.PutUint32(all[8:], uint32(len(all)-12))
	binary.BigEndian.PutUint32(all[17:], crc32.Checksum(all[21:], castagnoli))
	return all
}

// answerOf is an answer to a fetch request with sets of one partition, without its length.
func answerOf(version int16, sets ...[]byte) []byte {
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(version)
	topic, partition := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
	partition.RecordBatches = bytes.Join(sets, nil)
	topic.Partitions = append(topic.Partitions, partition)
	resp.Topics = append(resp.Topics, topic)
	head := []byte{0, 0, 0, 7} // the number of the request
	if resp.IsFlexible() {
		head = append(head, 0)
	}
	return resp.AppendTo(head)
}

func TestPlain_MarksOnlyTooLargeSets(t *testing.T) {
	t.Parallel()
	const n = 100
	light, exact := plainSet(n/2), int(n*recordSize)+7*n
	damaged := plainSet(2 * n)
	damaged[70]++
	codec := plainSet(2 * n)
	codec[22] = 4
	binary.BigEndian.PutUint32(codec[17:], crc32.Checksum(codec[21:], castagnoli))
	for name, tc := range map[string]struct {
		set  []byte
		most int
		want bool
	}{
		"at the limit":   {plainSet(n), exact, false},
		"one byte more":  {plainSet(n), exact - 1, true},
		"damaged":        {damaged, exact, false},
		"compressed":     {codec, exact, false},
		"cut off":        {plainSet(2 * n)[:200], exact, false},
		"an older kind":  {append(make([]byte, 16), 1), exact, false},
		"nothing at all": {nil, exact, false},
	} {
		for _, version := range []int16{4, 11, 12, 17} {
			answer := answerOf(version, light, tc.set)
			c := plainConn{most: tc.most}
			c.version.Store(int32(version) + 1)
			before := bytes.Clone(answer)
			c.look(answer)
			if changed := !bytes.Equal(answer, before); changed != tc.want {
				t.Errorf("%s, version %d: marked: %v", name, version, changed)
			}
			if set := answer[bytes.Index(answer, light)+len(light):]; tc.want &&
				(set[22] != byte(heavy) || binary.BigEndian.Uint32(set[17:]) != crc32.Checksum(set[21:len(tc.set)], castagnoli)) {
				t.Errorf("%s, version %d: the client will not take it for one of codec heavy", name, version)
			}
		}
	}
}

// TestPlain_PassesAnswersOn reads answers as the client does, in pieces of any size.
func TestPlain_PassesAnswersOn(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	near, far := net.Pipe()
	var sent bytes.Buffer
	var sizes []int
	for range 200 {
		body := make([]byte, 1+random.IntN(20_000))
		if random.IntN(2) == 0 {
			body = answerOf(12, plainSet(1+random.IntN(3_000)))
		}
		sizes = append(sizes, len(body))
		_ = binary.Write(&sent, binary.BigEndian, int32(len(body)))
		sent.Write(body)
	}
	go func() {
		for rest := sent.Bytes(); len(rest) > 0; {
			n := min(1+random.IntN(6_000), len(rest))
			if _, err := far.Write(rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
		_ = far.Close()
	}()
	c := &plainConn{Conn: near, most: 1 << 30, large: 5_000}
	c.version.Store(13)
	in := bufio.NewReader(c)
	want := sent.Bytes()
	for i, size := range sizes {
		answer := make([]byte, 4+size)
		if _, err := io.ReadFull(in, answer[:4]); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(in, answer[4:]); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(answer, want[:4+size]) {
			t.Fatalf("answer %d of %d bytes came as another", i, size)
		}
		want = want[4+size:]
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("behind the last answer: %v", err)
	}
}
