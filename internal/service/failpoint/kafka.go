package failpoint

import (
	"context"
	"encoding/binary"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kafka puts the points of produce requests and offset commits around the connections that dial makes; nil is the plain
// way.
func (s *Set) Kafka(dial Dial) Dial {
	dial = dialOr(dial)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &kafkaConn{Conn: conn, set: s, asked: map[int32]asked{}}, nil
	}
}

// asked is a request whose answer is waited for.
type asked struct {
	key, version int16
	topics       map[string]bool // of a produce request; by name
}

// kafkaConn reads along what is asked and answered.
type kafkaConn struct {
	net.Conn
	set     *Set
	out, in frames

	mu    sync.Mutex
	asked map[int32]asked // by correlation id
}

const (
	produceKey      = 0
	metadataKey     = 3
	offsetCommitKey = 8
)

func (c *kafkaConn) Write(p []byte) (int, error) {
	var points []Point
	// Before it is sent: the answer may be there before Write returns.
	c.out.feed(p, c.wanted, func(frame []byte) { points = append(points, c.request(frame)...) })
	n, err := c.Conn.Write(p)
	if err != nil {
		return n, err
	}
	for _, point := range points {
		if err := c.trip(point); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (c *kafkaConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	var points []Point
	c.in.feed(p[:n], c.expected, func(frame []byte) { points = append(points, c.response(frame)...) })
	for _, point := range points {
		if err := c.trip(point); err != nil {
			return 0, err
		}
	}
	return n, err
}

// trip reaches a point; where that is to fail, the connection breaks.
func (c *kafkaConn) trip(p Point) error {
	err := c.set.reach(p, broken)
	if err != nil {
		_ = c.Close()
	}
	return err
}

// wanted says from the first bytes of a request that it is one of those that are looked at.
func (c *kafkaConn) wanted(head []byte) bool {
	switch binary.BigEndian.Uint16(head) {
	case produceKey, metadataKey, offsetCommitKey:
		return true
	}
	return false
}

// expected says from the first bytes of an answer that it belongs to such a request.
func (c *kafkaConn) expected(head []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.asked[int32(binary.BigEndian.Uint32(head))]
	return ok
}

// request notes a request and says which points it comes by.
func (c *kafkaConn) request(frame []byte) []Point {
	r := kbin.Reader{Src: frame}
	a := asked{key: r.Int16(), version: r.Int16()}
	id := r.Int32()
	r.NullableString() // client id
	req := kmsg.RequestForKey(a.key)
	req.SetVersion(a.version)
	if req.IsFlexible() {
		kmsg.SkipTags(&r)
	}
	var points []Point
	switch a.key {
	case produceKey:
		produce, ok := req.(*kmsg.ProduceRequest)
		if !ok || !r.Ok() || produce.ReadFrom(r.Src) != nil {
			return nil
		}
		a.topics = map[string]bool{}
		for _, t := range produce.Topics {
			name := c.set.topic(t.Topic, t.TopicID)
			a.topics[name] = true
			points = append(points, c.set.sent(name)...)
		}
	case offsetCommitKey:
		points = []Point{OffsetCommitSent}
	}
	c.mu.Lock()
	c.asked[id] = a
	c.mu.Unlock()
	return points
}

// response takes note of an answer and says which points it comes by: only what the broker took.
func (c *kafkaConn) response(frame []byte) []Point {
	r := kbin.Reader{Src: frame}
	id := r.Int32()
	c.mu.Lock()
	a := c.asked[id]
	delete(c.asked, id)
	c.mu.Unlock()
	resp := kmsg.ResponseForKey(a.key)
	resp.SetVersion(a.version)
	if resp.IsFlexible() {
		kmsg.SkipTags(&r)
	}
	if !r.Ok() || resp.ReadFrom(r.Src) != nil {
		return nil
	}
	switch resp := resp.(type) {
	case *kmsg.MetadataResponse:
		for _, t := range resp.Topics {
			if t.Topic != nil {
				c.set.learn(t.TopicID, *t.Topic)
			}
		}
	case *kmsg.OffsetCommitResponse:
		return taken(resp)
	case *kmsg.ProduceResponse:
		var points []Point
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 {
					points = append(points, c.set.acked(c.set.topic(t.Topic, t.TopicID))...)
					break
				}
			}
		}
		return points
	}
	return nil
}

func taken(resp *kmsg.OffsetCommitResponse) []Point {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 {
				return []Point{OffsetCommitAcked}
			}
		}
	}
	return nil
}

// learn notes how the brokers number a topic.
func (s *Set) learn(id [16]byte, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[id] = name
}

func (s *Set) topic(name string, id [16]byte) string {
	if name != "" {
		return name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}

// sent are the points of a record that was sent to a topic.
func (s *Set) sent(topic string) []Point {
	switch {
	case topic == s.topics.DLQ:
		return []Point{DLQSent}
	case topic == s.topics.ParkingDLQ:
		return []Point{ParkingDLQSent}
	case topic == s.topics.Parking && s.replayer:
		return []Point{ReParkedSent}
	case topic == s.topics.Parking:
		return []Point{ParkingSent}
	}
	return nil
}

// acked are the points of a record that a topic has.
func (s *Set) acked(topic string) []Point {
	switch {
	case topic == s.topics.DLQ:
		return []Point{DLQAcked}
	case topic == s.topics.ParkingDLQ:
		return []Point{ParkingDLQAcked}
	case topic == s.topics.Parking && s.replayer:
		return []Point{ReParked}
	case topic == s.topics.Parking:
		return []Point{ParkingAcked}
	}
	return nil
}
