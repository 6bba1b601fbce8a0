package failpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// farEnd is a connection that keeps what is written and answers what it is told to.
type farEnd struct {
	net.Conn
	written [][]byte
	answers bytes.Buffer
	closed  bool
}

func (c *farEnd) Write(p []byte) (int, error) {
	c.written = append(c.written, bytes.Clone(p))
	return len(p), nil
}
func (c *farEnd) Read(p []byte) (int, error) { return c.answers.Read(p) }
func (c *farEnd) Close() error               { c.closed = true; return nil }

// to is a way to connect to c.
func to(c *farEnd) Dial {
	return func(context.Context, string, string) (net.Conn, error) { return c, nil }
}

func connect(t *testing.T, ctx context.Context, dial Dial) net.Conn { //nolint:revive // the test comes first
	t.Helper()
	conn, err := dial(ctx, "tcp", "far:1")
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func message(kind byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

func startup() []byte {
	return append(binary.BigEndian.AppendUint32(nil, 9), 0, 3, 0, 0, 0)
}

func batch(sql ...string) []byte {
	var b []byte
	for _, s := range sql {
		b = slices.Concat(b, message('P', "\x00"+s+"\x00\x00\x00"), message('B', "values"), message('E', "\x00\x00\x00\x00\x00"))
	}
	return append(b, message('H', "")...)
}

func mustWrite(t *testing.T, c net.Conn, p []byte) {
	t.Helper()
	if n, err := c.Write(p); err != nil || n != len(p) {
		t.Fatalf("wrote %d of %d, %v", n, len(p), err)
	}
}

func TestPostgres_CutsTransactionBehindBEGIN(t *testing.T) {
	t.Parallel()
	s, log := watched(t, "tx-begun=stop,rows-sent=stop,commit-sent=stop,commit-acked=stop")
	far := &farEnd{}
	c := connect(t, t.Context(), s.Postgres(to(far)))
	mustWrite(t, c, startup())
	first := batch("BEGIN ISOLATION LEVEL READ COMMITTED", "\nINSERT INTO decision_logs (a) SELECT")
	mustWrite(t, c, first)
	if len(far.written) != 3 || !bytes.Equal(slices.Concat(far.written[1:]...), first) || strings.Contains(string(far.written[1]), "INSERT") {
		t.Errorf("written in pieces %q", far.written[1:])
	}
	mustWrite(t, c, batch("COMMIT"))
	far.answers.Write(message('C', "COMMIT\x00"))
	buf := make([]byte, 100)
	if n, err := c.Read(buf); err != nil || n == 0 {
		t.Errorf("read %d, %v", n, err)
	}
	said(t, log, TxBegun, RowsSent, CommitSent, CommitAcked)
}

func TestPostgres_RowsSentWithEndOfCOPY(t *testing.T) {
	t.Parallel()
	s, log := watched(t, "rows-sent=stop,commit-sent=stop")
	c := connect(t, t.Context(), s.Postgres(to(&farEnd{})))
	mustWrite(t, c, startup())
	mustWrite(t, c, message('Q', "COPY decision_logs (a) FROM STDIN (FORMAT binary)\x00"))
	mustWrite(t, c, message('d', "COPY decision_logs"))
	said(t, log)
	mustWrite(t, c, message('c', ""))
	said(t, log, RowsSent)
	mustWrite(t, c, batch("SELECT 1", "COMMIT"))
	said(t, log, RowsSent, CommitSent)
}

// said compares what was tripped.
func said(t *testing.T, log *[]string, want ...Point) {
	t.Helper()
	var got []Point
	for _, line := range *log {
		if _, after, ok := strings.Cut(line, `"failpoint":"`); ok {
			name, _, _ := strings.Cut(after, `"`)
			got = append(got, Point(name))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("tripped %v, want %v", got, want)
	}
}

func TestPostgres_ProbeReachesItsOwnPoint(t *testing.T) {
	t.Parallel()
	s, log := watched(t, "tx-begun=stop,rows-sent=stop,probe-open@1+=stop")
	for _, p := range []purpose{forProbe, forUpkeep} {
		c := connect(t, context.WithValue(t.Context(), purposeKey{}, p), s.Postgres(to(&farEnd{})))
		mustWrite(t, c, startup())
		mustWrite(t, c, batch("BEGIN ISOLATION LEVEL READ COMMITTED", "INSERT INTO decision_logs (a) SELECT"))
		mustWrite(t, c, batch("SET CONSTRAINTS ALL IMMEDIATE"))
	}
	said(t, log, ProbeOpen)
}

func TestPostgres_CommitWithoutInsert(t *testing.T) {
	t.Parallel()
	s, log := watched(t, "commit-sent@1+=stop")
	c := connect(t, t.Context(), s.Postgres(to(&farEnd{})))
	mustWrite(t, c, startup())
	mustWrite(t, c, batch("COMMIT"))
	said(t, log)
}

func TestPostgres_ErrorAtCOMMITAfterItWasSent(t *testing.T) {
	t.Parallel()
	s, _ := watched(t, "commit-sent=error")
	far := &farEnd{}
	c := connect(t, t.Context(), s.Postgres(to(far)))
	mustWrite(t, c, startup())
	mustWrite(t, c, batch("INSERT INTO decision_logs (a) SELECT"))
	if _, err := c.Write(batch("COMMIT")); err == nil || !far.closed {
		t.Errorf("error %v, closed %v", err, far.closed)
	}
	if !strings.Contains(string(far.written[len(far.written)-1]), "COMMIT") {
		t.Error("COMMIT was not sent")
	}
}

// framed is a request as it goes over the wire, under that correlation id.
func framed(req kmsg.Request, id int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("docket")).AppendRequest(nil, req, id)
}

func answered(resp kmsg.Response, id int32) []byte {
	b := kbin.AppendInt32(nil, id)
	if resp.IsFlexible() {
		b = append(b, 0)
	}
	b = resp.AppendTo(b)
	return append(kbin.AppendInt32(nil, int32(len(b))), b...)
}

func TestKafka_KnowsProduceAndCommitByTopic(t *testing.T) {
	t.Parallel()
	s, log := watched(t, "dlq-sent@1+=stop,dlq-acked@1+=stop,parking-sent@1+=stop,offset-commit-sent=stop,offset-commit-acked=stop")
	far := &farEnd{}
	c := connect(t, t.Context(), s.Kafka(to(far)))
	read := func(piece int) {
		for buf := make([]byte, piece); ; {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	}

	// The brokers number the topic; produce requests from version 13 on name it by that alone.
	meta := kmsg.NewPtrMetadataRequest()
	meta.SetVersion(12)
	mustWrite(t, c, framed(meta, 1))
	named := kmsg.NewPtrMetadataResponse()
	named.SetVersion(12)
	topic, name := kmsg.NewMetadataResponseTopic(), "dlq"
	topic.Topic, topic.TopicID = &name, [16]byte{7}
	named.Topics = append(named.Topics, topic)
	far.answers.Write(answered(named, 1))
	read(5)

	produce := kmsg.NewPtrProduceRequest()
	produce.SetVersion(13)
	into := kmsg.NewProduceRequestTopic()
	into.TopicID = [16]byte{7}
	into.Partitions = append(into.Partitions, kmsg.NewProduceRequestTopicPartition())
	produce.Topics = append(produce.Topics, into)
	for id, code := range map[int32]int16{2: 0, 3: 7} { // the second is refused
		whole := framed(produce, id)
		mustWrite(t, c, whole[:9])
		mustWrite(t, c, whole[9:])
		resp := kmsg.NewPtrProduceResponse()
		resp.SetVersion(13)
		of, part := kmsg.NewProduceResponseTopic(), kmsg.NewProduceResponseTopicPartition()
		of.TopicID, part.ErrorCode = [16]byte{7}, code
		of.Partitions = append(of.Partitions, part)
		resp.Topics = append(resp.Topics, of)
		far.answers.Write(answered(resp, id))
	}
	read(1000)
	if n := strings.Count(strings.Join(*log, " "), `"dlq-sent"`); n != 2 {
		t.Errorf("dlq-sent %d times, want 2", n)
	}
	if n := strings.Count(strings.Join(*log, " "), `"dlq-acked"`); n != 1 {
		t.Errorf("dlq-acked %d times, want 1", n)
	}

	*log = nil
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.SetVersion(8)
	mustWrite(t, c, framed(commit, 4))
	done := kmsg.NewPtrOffsetCommitResponse()
	done.SetVersion(8)
	of := kmsg.NewOffsetCommitResponseTopic()
	of.Partitions = append(of.Partitions, kmsg.NewOffsetCommitResponseTopicPartition())
	done.Topics = append(done.Topics, of)
	far.answers.Write(answered(done, 4))
	read(3)
	said(t, log, OffsetCommitSent, OffsetCommitAcked)
}

func TestFrames_AnyPieces(t *testing.T) {
	t.Parallel()
	frame := func(body string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	stream := slices.Concat(frame("keep one"), frame("drop two, which is longer"), frame("keep"), frame("drop"), frame("keep three"))
	for piece := 1; piece <= len(stream); piece++ {
		var f frames
		var got []string
		for part := range slices.Chunk(stream, piece) {
			f.feed(part, func(head []byte) bool { return string(head) == "keep" }, func(b []byte) { got = append(got, string(b)) })
		}
		if want := []string{"keep one", "keep", "keep three"}; !slices.Equal(got, want) {
			t.Fatalf("in pieces of %d: %q", piece, got)
		}
	}
}
