package reader

import (
	"slices"
	"strconv"
	"strings"
)

// parsedDecision has the parts of a decision that an explanation uses.
type parsedDecision struct {
	whole, result *node
	path          string
	said          shape
}

func parseDecision(d Decision, q Question) parsedDecision {
	r := parsedDecision{whole: parse(d.Raw)}
	r.result = r.whole.get("result")
	r.path = r.whole.get("path").str()
	if d.Path != nil {
		r.path = *d.Path
	}
	if r.whole == nil {
		r.said = shape{verdict: d.Verdict, from: "the columns"}
		return r
	}
	r.said = read(r.whole, r.path, q.Extractors)
	return r
}

func (r parsedDecision) bundles() []Bundle {
	out := []Bundle{}
	if n := r.whole.get("bundles"); n.is(isObject) {
		for i, name := range n.keys {
			if i < maxPointers {
				out = append(out, Bundle{Name: cutText(name), Revision: cutText(n.kids[i].get("revision").scalar())})
			}
		}
	}
	if rev := r.whole.get("revision").str(); rev != "" && len(out) == 0 {
		out = append(out, Bundle{Revision: cutText(rev)}) // OPA before bundles had names
	}
	return out
}

func (r parsedDecision) opa() OPA {
	o := OPA{Labels: map[string]string{}}
	n := r.whole.get("labels")
	if !n.is(isObject) {
		return o
	}
	o.ID, o.Version = cutText(n.get("id").str()), cutText(n.get("version").str())
	for i, key := range n.keys {
		if text := n.kids[i].scalar(); text != "" && key != "id" && key != "version" && len(o.Labels) < maxPointers {
			o.Labels[cutText(key)] = cutText(text)
		}
	}
	return o
}

func (r parsedDecision) pointers(key string) []string {
	out := r.whole.get(key).strs()
	if len(out) > maxPointers {
		out = out[:maxPointers]
	}
	for i := range out {
		out[i] = cutText(out[i])
	}
	return notNil(out)
}

func (r parsedDecision) evaluation() *Evaluation {
	m := r.whole.get("metrics")
	ns := func(key string) int64 {
		n, err := strconv.ParseInt(m.get(key).scalar(), 10, 64)
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	e := Evaluation{EvalNS: ns("timer_rego_query_eval_ns"), ServerNS: ns("timer_server_handler_ns")}
	if e == (Evaluation{}) {
		return nil
	}
	return &e
}

// identifying are names under which requests say who wants to do what to what. Names of secrets are not among them.
var identifying = setOf(
	"user", "username", "user_id", "userid", "sub", "subject", "principal", "actor", "identity", "caller", "email", "role", "roles", "group", "groups", "tenant", "org",
	"client_id", "service", "method", "path", "parsed_path", "action", "operation", "verb", "resource", "resource_id", "resource_type", "object", "namespace", "name", "kind",
	"host", "event_type", "scope", "scopes", "percent", "flag",
)

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

func (r parsedDecision) asked(q Question) Asked {
	who, _, _ := r.subjectOf(q)
	a := Asked{Subject: cutText(who), SubjectBy: r.by(q).String(), RequestedBy: cutText(r.whole.get("requested_by").str()), Input: []Part{}}
	input := r.whole.get("input")
	if input == nil {
		return a
	}
	level := []valueAt{{input, ""}}
	for depth := 0; depth < 5 && len(level) > 0; depth++ {
		var next []valueAt
		for _, at := range level {
			for i, key := range at.node.keys {
				switch kid := at.node.kids[i]; {
				case kid.kind == isObject:
					next = append(next, valueAt{kid, pointer(at.pointer, key)})
				case len(a.Input) < maxParts && identifying[strings.ToLower(key)] && plainValue(kid):
					c := kid.cut(maxPartBytes)
					a.Input = append(a.Input, Part{Pointer: pointer(at.pointer, key), Value: Value{JSON: c.JSON, Cut: c.Text}})
				}
			}
		}
		level = next
	}
	return a
}

// plainValue reports whether a value is a text, a number or a boolean, or a list of these.
func plainValue(n *node) bool {
	if n.kind == isArray {
		return len(n.kids) > 0 && !slices.ContainsFunc(n.kids, func(kid *node) bool { return kid.scalar() == "" })
	}
	return n.scalar() != ""
}
