package collector

// Tracer follows uploads.
type Tracer interface {
	// Upload: an upload of somebody who may upload is in hand. It came with this traceparent, empty for none.
	Upload(traceparent string) Trace
}

// Trace follows one upload. It belongs to the goroutine that works on it, never blocks and changes nothing.
type Trace interface {
	// Traceparent is the header traceparent of the records of the upload, empty for none.
	Traceparent() string
	// Letter: the decision at index is about to be dead-lettered. It returns what its x-traceparent is to say, empty for none.
	Letter(index int, code string) string
	// Publishing: so many records are offered to the brokers, until done is called.
	Publishing(records int) (done func(error))
	// Dead: the decision at index has its home in the dead-letter topic, under this id.
	Dead(index int, id string)
	// End: the upload is answered.
	End(Ended)
}

// Ended is what became of an upload.
type Ended struct {
	Status          int
	Reason          string // why it is not taken, empty where it is
	Topic, Dead     int    // decisions that brokers acknowledged, by home
	Bytes, Inflated int64  // as it came, and after gunzip
}

// untraced is the trace where nobody follows.
type untraced struct{}

func (untraced) Traceparent() string        { return "" }
func (untraced) Letter(int, string) string  { return "" }
func (untraced) Publishing(int) func(error) { return func(error) {} }
func (untraced) Dead(int, string)           {}
func (untraced) End(Ended)                  {}
