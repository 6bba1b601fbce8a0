//go:build integration

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"docket/internal/testkit/testenv"
)

// hostileMemory is what a backend of Postgres may take for itself, whatever the decisions are.
const hostileMemory = 64 << 10 // kB

// TestHostile_NoDecisionHides sends decisions that were made to hide, half of them through a collector and half straight
// into Kafka. Each whose id can be read is found by its id, the others by their place. Every page can be read, and their
// day can be archived and restored. DOCKET_TEST_HOSTILE is the number of decisions, DOCKET_TEST_SEED that of the seed.
func TestHostile_NoDecisionHides(t *testing.T) {
	t.Parallel()
	n, seed := setting(t, "DOCKET_TEST_HOSTILE", 1500), uint64(setting(t, "DOCKET_TEST_SEED", int(rand.Uint32())))
	t.Logf("seed %d", seed)
	h := newHostile(t)
	h.evils = append(evils(seed, n/2), uniquely(evils(seed+1, n/2))...)
	half := len(evils(seed, n/2))
	limit := patience + time.Duration(n)*20*time.Millisecond

	h.produce(h.evils[:half], rand.New(rand.NewPCG(seed, 1)))
	h.upload(h.evils[half:])
	h.drained(limit)
	h.entered(limit)

	h.byID()
	h.byPlace(half)
	h.pages()
	h.verify(0)
	h.archived()
	if most := h.watch.Load(); most > hostileMemory {
		t.Errorf("a backend of Postgres took %d MiB", most>>10)
	} else {
		t.Logf("%d decisions; a backend of Postgres took %d MiB at most", len(h.evils), most>>10)
	}
}

func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q", name, text)
	}
	return n
}

// uniquely gives the evils ids of their own.
func uniquely(all []evil) []evil {
	for i, e := range all {
		all[i].value = strings.ReplaceAll(strings.ReplaceAll(e.value, "evil-", "live-"), `\u0065vil-`, `\u006cive-`)
		all[i].id = strings.Replace(e.id, "evil-", "live-", 1)
	}
	return all
}

// hostile is a system with all programs that answer, and what was sent to it.
type hostile struct {
	*system
	uploads, api string
	evils        []evil
	produced     []string // of those that were produced: topic/partition/offset, and the index where there are several
	conn         *pgx.Conn
	watch        atomic.Int64 // kB that a backend took at most
}

const auditorToken = "0123456789abcdef0123"

func newHostile(t *testing.T) *hostile {
	t.Helper()
	h := &hostile{system: newSystem(t, testenv.Kafka(t), testenv.Postgres(t), append(deskEnv(t), "DOCKET_BATCH_MAX_RECORDS=2000", "DOCKET_ARCHIVE_TO="+filepath.Join(t.TempDir(), "shelf"), "DOCKET_OPERATOR=mara")...)}
	h.exec(`ALTER TABLE decision_logs DETACH PARTITION decision_logs_before; DROP TABLE decision_logs_before;
		CREATE TABLE decision_logs_p20260304 PARTITION OF decision_logs FOR VALUES FROM ('` + hostileDay + ` 00:00+00') TO ('2026-03-05 00:00+00')`)
	h.conn = h.connect()
	h.uploads, h.api = freeAddr(t), freeAddr(t)
	awaitReady(t, h.collector(h.uploads))
	h.consumer()
	h.desk("DOCKET_DESK_API_ADDR="+h.api, "DOCKET_DESK_API_TOKENS=mara:auditor:"+auditorToken)
	h.measure()
	return h
}

// measure asks Postgres, until the test ends, what its backends take for themselves.
func (h *hostile) measure() {
	conn := h.connect()
	end, ended := make(chan struct{}), make(chan struct{})
	h.t.Cleanup(func() { close(end); <-ended })
	size := regexp.MustCompile(`RssAnon:\s+(\d+) kB`)
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			rows, err := conn.Query(h.t.Context(), `SELECT pg_read_file('/proc/' || pid || '/status', 0, 8192, true) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name <> '' AND pid <> pg_backend_pid()`)
			if err != nil {
				continue // the test has ended, or the server is busy: the next look comes at once
			}
			all, err := pgx.CollectRows(rows, pgx.RowTo[*string])
			if err != nil {
				continue // as above
			}
			for _, status := range all {
				if status == nil {
					continue // that backend has ended
				}
				if m := size.FindStringSubmatch(*status); m != nil {
					kb, _ := strconv.ParseInt(m[1], 10, 64) // digits
					h.watch.Store(max(h.watch.Load(), kb))
				}
			}
		}
	}()
}

// produce writes the decisions into the source: alone, on lines, in arrays. Two of one id follow each other in one partition.
func (h *hostile) produce(all []evil, random *rand.Rand) {
	h.t.Helper()
	cl := h.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(len(all)+1))
	h.produced = make([]string, len(all))
	var rs []*kgo.Record
	var of [][]int
	for i := 0; i < len(all); {
		several := []int{i}
		j := i + 1
		form := random.IntN(4)
		for ; form > 1 && j < len(all) && len(several) < 40 && !all[i].alone && !all[j].alone; j++ {
			several = append(several, j)
		}
		r := &kgo.Record{Partition: 0, Value: []byte(all[i].value)}
		switch {
		case all[i].gzip:
			r.Value = torn(h.t, r.Value)
		case len(several) > 1 && form == 2:
			r.Value = []byte("[" + joined(all, several, ",") + "]")
		case len(several) > 1:
			r.Value = []byte(joined(all, several, "\n"))
		}
		if len(rs) > 0 && all[i].id != "" && all[i].id == all[i-1].id {
			r.Partition = rs[len(rs)-1].Partition
		} else {
			r.Partition = random.Int32N(6)
		}
		rs, of = append(rs, r), append(of, several)
		i = j
	}
	if err := cl.ProduceSync(h.t.Context(), rs...).FirstErr(); err != nil {
		h.t.Fatal(err)
	}
	for i, r := range rs {
		for at, which := range of[i] {
			h.produced[which] = fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset)
			if len(of[i]) > 1 {
				h.produced[which] += fmt.Sprintf("/%d", at)
			}
		}
	}
}

func joined(all []evil, which []int, by string) string {
	var texts []string
	for _, i := range which {
		texts = append(texts, all[i].value)
	}
	return strings.Join(texts, by)
}

// torn is the value compressed, without its last bytes.
func torn(t *testing.T, value []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(value); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()[:b.Len()-6]
}

// upload sends the decisions to the collector. A decision that would spoil the upload of its neighbours goes into the source.
func (h *hostile) upload(all []evil) {
	h.t.Helper()
	var direct []*kgo.Record
	var batch []string
	flush := func() {
		if len(batch) == 0 {
			return
		}
		if status, body := upload(h.t, h.uploads, "["+strings.Join(batch, ",")+"]", true); status != http.StatusOK {
			h.t.Fatalf("an upload of %d was answered %d %s", len(batch), status, body)
		}
		batch = nil
	}
	for i, e := range all {
		if e.alone {
			r := &kgo.Record{Value: []byte(e.value)}
			if e.gzip {
				r.Value = torn(h.t, r.Value)
			}
			direct = append(direct, r)
			continue
		}
		batch = append(batch, e.value)
		if len(batch) >= 150 && (i+1 == len(all) || all[i+1].id != e.id) {
			flush()
		}
	}
	flush()
	h.put(direct...)
}

// entered waits until the desk has read all dead letters.
func (h *hostile) entered(limit time.Duration) {
	h.t.Helper()
	group := ""
	for _, e := range h.env {
		if name, ok := strings.CutPrefix(e, "DOCKET_DESK_GROUP="); ok {
			group = name
		}
	}
	admin := h.admin()
	eventually(h.t, limit, "the desk has read all dead letters", func() error {
		ends, err := admin.ListEndOffsets(h.t.Context(), h.places.DLQTopic)
		if err != nil {
			return err
		}
		done, err := admin.FetchOffsets(h.t.Context(), group)
		if err != nil {
			return err
		}
		for _, end := range ends.Offsets().Sorted() {
			if at, _ := done.Lookup(end.Topic, end.Partition); at.At < end.At && end.At > 0 {
				return fmt.Errorf("it is at %d of %d in partition %d", at.At, end.At, end.Partition)
			}
		}
		return nil
	})
}

// ask asks the desk's API.
func (h *hostile) ask(client *http.Client, path string, into any) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://"+h.api+"/api/v1"+path, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+auditorToken)
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if body, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil, err
	}
	if into != nil && resp.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, into)
	}
	return resp.StatusCode, body, err
}

// known is what has to be found of an id.
type known struct {
	kinds []string
	rows  int
	twins int
	codes []string
}

// byID asks the API for each id, and the commands for one of each kind.
func (h *hostile) byID() {
	h.t.Helper()
	want := map[string]*known{}
	var ids []string
	for _, e := range h.evils {
		if e.id == "" {
			continue
		}
		k := want[e.id]
		if k == nil {
			k = &known{}
			want[e.id] = k
			ids = append(ids, e.id)
		}
		k.kinds = append(k.kinds, e.kind)
		switch {
		case e.code != "":
			k.codes = append(k.codes, e.code)
		default:
			k.rows++
			if e.twin {
				k.twins++
			}
		}
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var all errgroup.Group
	all.SetLimit(4)
	wrong := make([]error, len(ids))
	for i, id := range ids {
		all.Go(func() error {
			wrong[i] = h.found(client, id, want[id])
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		h.t.Fatal(err)
	}
	told := 0
	for _, err := range wrong {
		if err == nil {
			continue
		}
		if told++; told <= 20 {
			h.t.Error(err)
		}
	}
	if told > 0 {
		h.t.Errorf("%d of %d ids", told, len(ids))
	}
	seen := map[string]bool{}
	for _, id := range ids {
		k := want[id]
		if seen[k.kinds[0]] {
			continue
		}
		seen[k.kinds[0]] = true
		h.shown(id, k)
	}
}

// found asks the API for an id.
func (h *hostile) found(client *http.Client, id string, want *known) error {
	var got struct {
		Decisions []struct {
			ID         string `json:"decision_id"`
			Unfaithful []string
			Decision   json.RawMessage
		}
		Others []struct{ Code string }
	}
	status, body, err := h.ask(client, "/decisions/"+url.PathEscape(id), &got)
	if err != nil {
		return fmt.Errorf("%v %q: %w", want.kinds, id, err)
	}
	if want.rows == 0 {
		if status != http.StatusNotFound || !bytes.Contains(body, []byte("a dead letter claims it")) {
			return fmt.Errorf("%v %q: answered %d %.300s", want.kinds, id, status, body)
		}
		return nil
	}
	twins, codes := 0, []string(nil)
	for _, d := range got.Decisions {
		if d.ID != id || len(d.Decision) == 0 {
			return fmt.Errorf("%v %q: found %q with %d bytes", want.kinds, id, d.ID, len(d.Decision))
		}
		if len(d.Unfaithful) > 0 {
			twins++
		}
	}
	for _, o := range got.Others {
		codes = append(codes, o.Code)
	}
	if status != http.StatusOK || len(got.Decisions) != want.rows || twins != want.twins || !slices.Equal(codes, want.codes) {
		return fmt.Errorf("%v %q: answered %d with %d rows, %d altered, and %v; want %+v", want.kinds, id, status, len(got.Decisions), twins, codes, *want)
	}
	return nil
}

// shown asks the commands for an id.
func (h *hostile) shown(id string, want *known) {
	h.t.Helper()
	for _, act := range []string{"logs", "why"} {
		code := 0
		if want.rows == 0 {
			code = 1
		}
		told, err := h.tryDocket(nil, code, act, id)
		if err != nil && !(act == "why" && want.rows > 1) { // it asks which of them is meant
			h.t.Errorf("%v: %s %q: %v", want.kinds, act, id, err)
			continue
		}
		for _, c := range want.codes {
			if !strings.Contains(told, c) {
				h.t.Errorf("%v: %s %q does not tell of %s:\n%.1000s", want.kinds, act, id, c, told)
			}
		}
		if want.twins > 0 && !strings.Contains(told, "altered") {
			h.t.Errorf("%v: %s %q does not tell what is altered:\n%.1000s", want.kinds, act, id, told)
		}
		if at := strings.IndexFunc(told, steers); at >= 0 {
			h.t.Errorf("%v: %s %q prints %q", want.kinds, act, id, told[max(0, at-20):])
		}
	}
}

// steers says whether a rune steers a terminal.
func steers(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// byPlace finds those without an id by where they were produced, or, from a collector, by their number.
func (h *hostile) byPlace(half int) {
	h.t.Helper()
	sample := map[string]bool{}
	for i, e := range h.evils[:half] {
		if e.id != "" {
			continue
		}
		place := strings.Split(h.produced[i], "/")
		var code string
		sql := "SELECT code FROM dead_letters JOIN dead_letter_groups USING (group_id) WHERE origin_topic = $1 AND origin_partition = $2 AND origin_offset = $3 AND coalesce(origin_index::text, '') IN ('', $4)"
		index := "0"
		if len(place) > 3 {
			index = place[3]
		}
		if err := h.conn.QueryRow(h.t.Context(), sql, place[0], place[1], place[2], index).Scan(&code); err != nil || code != e.code {
			h.t.Errorf("%s at %s has the code %q, want %q; %v", e.kind, h.produced[i], code, e.code, err)
		}
		if !sample[e.kind] {
			sample[e.kind] = true
			out, exit := h.command(nil, "consumer", "where-is", strings.Join(place[:3], "/"))
			if exit != 0 || !strings.Contains(out, e.code) {
				h.t.Errorf("where-is %s of %s ended with %d:\n%.2000s", h.produced[i], e.kind, exit, out)
			}
		}
	}
	var unnamed, told int
	for _, e := range h.evils[half:] {
		if e.id == "" {
			unnamed++
		}
	}
	if err := h.conn.QueryRow(h.t.Context(), "SELECT count(*) FROM dead_letters WHERE decision_id IS NULL AND origin_partition < 0").Scan(&told); err != nil {
		h.t.Fatal(err)
	}
	if told != unnamed {
		h.t.Errorf("the ledger has %d dead letters of the collector without an id, want %d", told, unnamed)
	}
}

// pages reads all pages of decisions with their payloads, and all of dead letters.
func (h *hostile) pages() {
	h.t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	seen, after := 0, ""
	for {
		var page struct {
			Decisions []struct{ Decision json.RawMessage }
			Next      string
		}
		q := url.Values{"payload": {"true"}, "limit": {"1000"}, "order": {"oldest"}}
		if after != "" {
			q.Set("after", after)
		}
		status, body, err := h.ask(client, "/decisions?"+q.Encode(), &page)
		if status != http.StatusOK || err != nil {
			h.t.Fatalf("the page after %d decisions was answered %d %.300s, %v", seen, status, body, err)
		}
		for _, d := range page.Decisions {
			if len(d.Decision) == 0 {
				h.t.Errorf("a decision of the page after %d has no payload", seen)
			}
		}
		seen += len(page.Decisions)
		if after = page.Next; after == "" {
			break
		}
	}
	rows := 0
	for _, e := range h.evils {
		if e.code == "" {
			rows++
		}
	}
	if stored := h.rows("true"); seen != rows || stored != rows {
		h.t.Errorf("the pages have %d decisions, the table %d, want %d", seen, stored, rows)
	}
	for _, args := range [][]string{{"logs", "--full", "-n", "1000"}, {"logs", "--lines", "-n", "1000"}, {"dlq", "list"}, {"dlq", "groups"}, {"stats"}} {
		told := h.docket(nil, 0, args...)
		if at := strings.IndexFunc(told, steers); at >= 0 {
			h.t.Errorf("docket %v prints %q", args, told[max(0, at-20):min(len(told), at+20)])
		}
	}
}

// archived takes the day out of the table and brings it back.
func (h *hostile) archived() {
	h.t.Helper()
	h.exec("UPDATE decision_logs SET stored_at = stored_at - interval '1 hour' WHERE ts >= '" + hostileDay + "' AND ts < '2026-03-05'") // a restore waits until what is new is counted
	before := h.dayHash()
	h.docket(nil, 0, "archive", "--day", hostileDay, "--yes")
	if n := h.rows("ts >= '" + hostileDay + "' AND ts < '2026-03-05'"); n != 0 {
		h.t.Errorf("%d decisions of the day are still in the table", n)
	}
	h.docket(nil, 0, "archive", "verify", "--all")
	h.docket(nil, 0, "restore", "--day", hostileDay)
	if after := h.dayHash(); after != before {
		h.t.Errorf("the day came back as %s, and was %s", after, before)
	}
}

// dayHash is the number of the day's rows and a hash of all that they hold.
func (h *hostile) dayHash() (text string) {
	h.t.Helper()
	err := h.conn.QueryRow(h.t.Context(), `SELECT count(*) || ' rows, ' || md5(string_agg(md5(t::text), '' ORDER BY ts, decision_id)) FROM decision_logs AS t
		WHERE ts >= '`+hostileDay+`' AND ts < '2026-03-05'`).Scan(&text)
	if err != nil {
		h.t.Fatal(err)
	}
	return text
}
