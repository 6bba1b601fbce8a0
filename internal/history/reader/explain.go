package reader

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"docket/internal/record/escape"
	"docket/internal/record/subject"
)

// Explanation says why a decision ended as it did, from the decision and those beside it. It contains text of others:
// it may be personal data, and must be escaped for a terminal.
type Explanation struct {
	// Incomplete says that the decisions around it were not searched completely. Notes say why.
	Incomplete bool `json:"-"`

	DecisionID string    `json:"decision_id"`
	Timestamp  time.Time `json:"timestamp"`

	// Verdict is from all known shapes of results, and VerdictFrom says which. VerdictStored is from the columns, as
	// in searches.
	Verdict       Verdict `json:"verdict"`
	VerdictFrom   string  `json:"verdict_from"`
	VerdictStored Verdict `json:"verdict_stored"`
	// Recognised is false if the result has no known shape. Then Result shows it, and nothing is guessed.
	Recognised bool `json:"recognised"`

	Path    string   `json:"path,omitempty"`
	Rego    string   `json:"rego,omitempty"` // the path in Rego's notation
	Query   string   `json:"query,omitempty"`
	Service string   `json:"service,omitempty"`
	Reasons []Reason `json:"reasons"`
	// MoreReasons is the number of further reasons.
	MoreReasons int     `json:"more_reasons"`
	Spoke       []Spoke `json:"policies_and_rules"`
	Score       *Score  `json:"score,omitempty"`
	Response    string  `json:"response,omitempty"` // the answer for an HTTP client, if the result has one
	Result      Value   `json:"result"`
	// MappedResult is the result as mapped by Envoy's plugin. NDBuiltins are the answers of non-deterministic
	// builtins.
	MappedResult *Value   `json:"mapped_result,omitempty"`
	NDBuiltins   *Value   `json:"nd_builtin_cache,omitempty"`
	Failure      *Failure `json:"error,omitempty"`

	Bundles []Bundle `json:"bundles"`
	OPA     OPA      `json:"opa"`
	Asked   Asked    `json:"asked"`

	Masked     []string    `json:"masked"`
	Erased     []string    `json:"erased"`
	Evaluation *Evaluation `json:"evaluation,omitempty"`
	TraceID    string      `json:"trace_id,omitempty"`
	SpanID     string      `json:"span_id,omitempty"`

	// Unfaithful is [Row.Unfaithful].
	Unfaithful []string `json:"unfaithful,omitempty"`
	// UploadedBy is [Row.UploadedBy].
	UploadedBy *string `json:"uploaded_by,omitempty"`
	// Edited is the edit that produced the stored decision.
	Edited *Edit `json:"edited,omitempty"`
	// Ahead is [Row.Ahead] in whole seconds.
	Ahead int64 `json:"ahead_seconds,omitempty"`
	// Unreadable is [Row.Unreadable].
	Unreadable bool `json:"unreadable,omitempty"`
	// Archived is [Row.Archived].
	Archived *ArchivedIn `json:"archived,omitempty"`

	Since  *Since      `json:"since,omitempty"`
	Before []Neighbour `json:"before"` // the nearest first
	After  []Neighbour `json:"after"`  // the nearest first
	// Notes are limits of the explanation, and odd facts.
	Notes []string `json:"notes"`
}

// Value is a value of a decision. One of more than [MaxValueBytes] has only Cut, the beginning of its JSON.
type Value struct {
	JSON json.RawMessage `json:"json,omitempty"`
	Cut  string          `json:"cut,omitempty"`
}

// Failure is the error that OPA reports.
type Failure struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Value   Value  `json:"value"`
}

// Bundle is a bundle that OPA had loaded.
type Bundle struct {
	Name     string `json:"name"`
	Revision string `json:"revision"` // empty: none
}

// OPA is the OPA that decided.
type OPA struct {
	ID      string            `json:"id,omitempty"`
	Version string            `json:"version,omitempty"`
	Labels  map[string]string `json:"labels"` // besides id and version
}

// Asked is the request.
type Asked struct {
	// Subject is the subject by the setting SubjectBy; empty if the decision has none.
	Subject     string `json:"subject,omitempty"`
	SubjectBy   string `json:"subject_by"`
	RequestedBy string `json:"requested_by,omitempty"`
	Input       []Part `json:"input"` // values that identify a request, by common names; not all of the input
}

// Part is a value of the input.
type Part struct {
	Pointer string `json:"pointer"` // into input
	Value   Value  `json:"value"`
}

// Evaluation is the time of the evaluation in nanoseconds, as far as OPA measured it.
type Evaluation struct {
	EvalNS   int64 `json:"eval_ns,omitempty"`   // timer_rego_query_eval_ns
	ServerNS int64 `json:"server_ns,omitempty"` // timer_server_handler_ns
}

// Neighbour is another decision of the same subject and path.
type Neighbour struct {
	DecisionID string    `json:"decision_id"`
	Timestamp  time.Time `json:"timestamp"`
	Verdict    Verdict   `json:"verdict"`
	Bundles    []Bundle  `json:"bundles"`
	// Changes lead from the earlier to the later of it and the explained decision.
	Changes []Change `json:"changes"`
	More    int      `json:"more"`
}

const (
	maxParts     = 16
	maxPartBytes = 200
	maxPointers  = 100 // of masked and erased values
	nearChanges  = 20  // of a neighbour
)

// Question says how to explain a decision. The zero value has no extractors and takes requested_by for the subject.
type Question struct {
	Subject    subject.Spec
	Extractors Extractors
	// Neighbours is the number of decisions before and after, at most [MaxNeighbours] each.
	Neighbours int
	// SameInput also looks for the last decision with the same input that ended otherwise. That may read many
	// decisions.
	SameInput bool
	// ArchiveBy is that of [Page], for all searches of the question together.
	ArchiveBy time.Time
	// Now returns the time; nil: time.Now.
	Now func() time.Time
}

func (q Question) now() time.Time {
	if q.Now != nil {
		return q.Now()
	}
	return time.Now()
}

// MaxNeighbours is the limit of [Question].
const MaxNeighbours = 50

// Explain explains a decision by its content and by those around it.
func Explain(d Decision, around Around, q Question) Explanation {
	return explain(d, parseDecision(d, q), around, q)
}

func explain(d Decision, r parsedDecision, around Around, q Question) Explanation {
	x := Explanation{
		DecisionID: d.ID, Timestamp: escape.Time(d.Time), Verdict: r.said.verdict, VerdictFrom: r.said.from, VerdictStored: d.Verdict, Unfaithful: d.Unfaithful, UploadedBy: d.UploadedBy, Edited: d.Edit, Ahead: int64(d.Ahead() / time.Second), Unreadable: d.Unreadable, Archived: d.Archived,
		Path: r.path, Query: cutText(r.whole.get("query").str()), Reasons: notNil(r.said.reasons), MoreReasons: r.said.more, Spoke: notNil(r.said.spoke),
		Score: r.said.score, Response: r.said.response, Bundles: r.bundles(), OPA: r.opa(), Asked: r.asked(q),
		Masked: r.pointers("masked"), Erased: r.pointers("erased"), Evaluation: r.evaluation(),
		TraceID: cutText(r.whole.get("trace_id").str()), SpanID: cutText(r.whole.get("span_id").str()),
		Result: value(r.result), Before: []Neighbour{}, After: []Neighbour{}, Notes: []string{},
	}
	if d.Service != nil {
		x.Service = *d.Service
	}
	if r.path != "" {
		x.Rego = rego(r.path)
	}
	for key, to := range map[string]**Value{"mapped_result": &x.MappedResult, "nd_builtin_cache": &x.NDBuiltins} {
		if n := r.whole.get(key); n.there() {
			v := value(n)
			*to = &v
		}
	}
	if e := r.whole.get("error"); e.there() {
		x.Failure = &Failure{Code: cutText(e.get("code").scalar()), Message: cutText(firstOf(e, []string{"message", "msg"})), Value: value(e)}
		if e.is(isString) {
			x.Failure.Message = cutText(e.text)
		}
	}
	x.Recognised = x.Verdict != Other || len(x.Reasons) > 0 || len(x.Spoke) > 0 || x.Score != nil || x.Response != ""
	if x.VerdictStored == "" {
		x.VerdictStored, _ = columns(r.whole, r.result)
	}
	x.remarks(r, q)
	x.beside(r, around, q)
	return x
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func value(n *node) Value {
	c := n.cut(MaxValueBytes)
	return Value{JSON: c.JSON, Cut: c.Text}
}

// rego returns a path in Rego's notation.
func rego(path string) string {
	var b strings.Builder
	b.WriteString("data")
	for step := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name(step) {
			b.WriteString("." + step)
		} else {
			b.WriteString("[" + strconv.Quote(step) + "]")
		}
	}
	return b.String()
}

func name(step string) bool {
	for i, r := range step {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return step != ""
}

// remarks adds notes about the decision's own fields.
func (x *Explanation) remarks(r parsedDecision, q Question) {
	note := func(text string) { x.Notes = append(x.Notes, text) }
	switch {
	case x.Unreadable:
		note("payload unreadable: its numbers take far more text than bytes, so only its columns are shown; docket archive writes it with such numbers as strings")
	case r.whole == nil:
		note("the stored decision is not valid JSON; only its columns are shown")
	}
	if x.Ahead > 0 {
		note("the timestamp is more than an hour later than when the decision was stored: a clock was wrong, or it was made up")
	}
	if x.Edited != nil {
		note("an operator edited this decision before it was stored: what is explained is not what OPA sent")
	}
	if len(x.Unfaithful) > 0 {
		note("jsonb cannot hold this decision as it came, so the payload is altered in places (unfaithful in --json); the exact bytes are in the column raw_bytes")
	}
	if !x.Recognised {
		note("no verdict or reason was recognised in the result, so it is shown as it is; DOCKET_READER_EXTRACTORS can tell where this path has them")
	} else if x.Verdict == Other {
		note("the result has reasons or policies, but nothing that says allowed or denied")
	}
	if x.Verdict != x.VerdictStored {
		note("docket logs and docket stats use the columns and count this decision as " + string(x.VerdictStored))
	}
	if x.Verdict == Undefined {
		note("no rule of this path had a value for this input, or the rule does not exist; the caller of OPA got no result, not false")
	}
	if x.Verdict == Denied && len(x.Reasons) == 0 {
		note("the result has no reason; if the policy also returns reasons, they are shown here")
	}
	if len(x.Bundles) == 0 {
		note("the decision names no bundle, so the revision of the policies is unknown")
	}
	if x.Asked.Subject == "" && q.Subject.Kind != subject.DecisionID {
		note("the decision has no " + x.Asked.SubjectBy + ", so the subject is unknown and other decisions of it were not searched")
	}
	if q.Subject.Kind == subject.DecisionID {
		note("with the subject decision_id each decision is its own subject, so there are no others to compare with")
	}
	if x.Path == "" {
		note("the decision has no path (an ad-hoc query), so others of the same path were not searched")
	}
}
