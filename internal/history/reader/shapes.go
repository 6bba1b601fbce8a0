package reader

import (
	"slices"
	"strconv"
	"strings"
)

// Reason is a reason that the result gives.
type Reason struct {
	Text    string `json:"text"`
	Policy  string `json:"policy,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Code    string `json:"code,omitempty"`
	Level   string `json:"level,omitempty"` // from the result, or warning if it is among warnings
	Pointer string `json:"pointer"`         // into the decision
}

// bare reports whether there is only a text.
func (r Reason) bare() bool { return r.Policy == "" && r.Rule == "" && r.Code == "" && r.Level == "" }

// same reports whether both have the same content, at any place.
func (r Reason) same(other Reason) bool {
	r.Pointer = other.Pointer
	return r == other
}

// Spoke is a policy or a rule that the result names.
type Spoke struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`              // policy or rule
	Outcome string `json:"outcome,omitempty"` // passed, failed, or "" if the result does not say
	Weight  string `json:"weight,omitempty"`  // a number, as written
	Pointer string `json:"pointer"`
}

// Score is a number that is compared with another.
type Score struct {
	Score     string `json:"score"`
	Max       string `json:"max,omitempty"`
	Threshold string `json:"threshold,omitempty"`
}

const (
	maxReasons = 100
	maxText    = 1000
	mostNested = 4 // depth limit of reasons inside lists and objects of reasons
)

var (
	reasonKeys = []string{
		"reason", "reasons", "message", "messages", "msg", "msgs", "denials", "denial", "denied", "deny", "violation", "violations", "error", "errors", "warning", "warnings", "warn",
		"failures", "explanation", "description", "body", "status_message",
	}
	textKeys   = []string{"msg", "message", "reason", "text", "description", "explanation", "error", "title", "detail"}
	policyKeys = []string{"policy", "policy_id", "policy_name", "policyId", "policyName", "constraint", "package"}
	ruleKeys   = []string{"rule", "rule_id", "rule_name", "ruleId", "ruleName", "check", "check_id", "id", "name"}
	codeKeys   = []string{"code", "error_code", "reason_code"}
	levelKeys  = []string{"severity", "level"}
	policyList = []string{"policy", "policies", "matched_policies", "applied_policies", "determining_policies", "breakdown", "enforce", "monitor"}
	ruleList   = []string{"rule", "rules", "matched_rules", "checks", "evaluated_rules"}
	denyNames  = []string{"deny", "denied", "denials", "violation", "violations", "is_denied"}
	allowWords = []string{"allow", "allowed", "permit", "permitted", "grant", "granted", "accept", "accepted"}
	denyWords  = []string{"deny", "denied", "forbid", "forbidden", "reject", "rejected", "block", "blocked"}
)

// shape has everything known about a result.
type shape struct {
	verdict  Verdict
	from     string
	column   bool // the verdict is from the columns, for every decision of this path
	reasons  []Reason
	more     int
	spoke    []Spoke
	score    *Score
	response string // the answer for Envoy or an HTTP client
}

func firstOf(n *node, keys []string) string {
	for _, key := range keys {
		if text := n.get(key).scalar(); text != "" {
			return text
		}
	}
	return ""
}

func cutText(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// read parses a decision.
func read(whole *node, path string, e Extractors) shape {
	var s shape
	result := whole.get("result")
	s.decide(whole, result, path, e)
	if of := e.of(path, RoleReasons); len(of) > 0 {
		for _, one := range of {
			s.reason(result.at(one.steps...), "/result"+one.Pointer, "", "", 0)
		}
	} else {
		s.reasonsIn(result, path)
	}
	s.spoken(result, e.of(path, RolePolicies), "policy", policyList)
	s.spoken(result, e.of(path, RoleRules), "rule", ruleList)
	for _, r := range s.reasons {
		s.named(r.Policy, "policy", "", "", r.Pointer)
		s.named(r.Rule, "rule", "", "", r.Pointer)
	}
	slices.SortStableFunc(s.spoke, func(a, b Spoke) int { return strings.Compare(a.Kind, b.Kind) })
	s.scores(result)
	if status := result.get("http_status"); status.is(isNumber) {
		s.response = "HTTP " + cutText(status.text)
	} else if status := result.get("status_code"); status.is(isNumber) {
		s.response = "HTTP " + cutText(status.text)
	}
	return s
}

// spoken finds the policies or the rules that a result names: where extractors say, else in the usual places.
func (s *shape) spoken(result *node, of []Extractor, kind string, keys []string) {
	for _, one := range of {
		s.speak(result.at(one.steps...), "/result"+one.Pointer, kind, 0)
	}
	if len(of) > 0 {
		return
	}
	for _, at := range places(result) {
		for _, key := range keys {
			s.speak(at.node.get(key), pointer(at.pointer, key), kind, 0)
		}
	}
}

type valueAt struct {
	node    *node
	pointer string
}

// places returns the parts of a result that belong to its verdict: the result itself, and usual members.
func places(result *node) []valueAt {
	out := []valueAt{{result, "/result"}}
	for _, steps := range [][]string{{"score"}, {"response"}, {"response", "status"}, {"decision"}, {"outcome"}, {"context"}, {"status"}} {
		if n := result.at(steps...); n.is(isObject) {
			out = append(out, valueAt{n, pointer("/result", steps...)})
		}
	}
	return out
}

// last returns the last segment of a path, which names a rule or a package.
func last(path string) string {
	path = strings.TrimRight(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// denies reports whether a rule of that name lists denials; conftest also has deny_x and violation_x.
func denies(name string) bool {
	return slices.Contains(denyNames, name) || strings.HasPrefix(name, "deny_") || strings.HasPrefix(name, "violation_")
}

func warns(name string) bool {
	return name == "warn" || name == "warning" || name == "warnings" || strings.HasPrefix(name, "warn_")
}

// reasonsIn finds the reasons in a result.
func (s *shape) reasonsIn(result *node, path string) {
	name := last(path)
	if (denies(name) || warns(name) || slices.Contains(reasonKeys, name)) && !result.is(isBool) && !result.is(isNumber) {
		s.reason(result, "/result", "", level(name), 0)
		return
	}
	for _, at := range places(result) {
		if !at.node.is(isObject) || at.pointer == "/result/response/status" && s.object(at.node, at.pointer, "", "") {
			continue // in Kubernetes message, reason and code are one reason
		}
		for i, key := range at.node.keys {
			if n := at.node.kids[i]; (slices.Contains(reasonKeys, key) || denies(key) || warns(key)) && !n.is(isBool) && !n.is(isNumber) {
				s.reason(n, pointer(at.pointer, key), "", level(key), 0)
			}
		}
	}
}

func level(key string) string {
	if warns(key) {
		return "warning"
	}
	return ""
}

// reason takes a reason, or a list or an object of them. policy is their policy.
func (s *shape) reason(n *node, at, policy, level string, depth int) {
	switch {
	case !n.there() || n.empty() || depth > mostNested:
	case n.kind == isArray:
		for i, kid := range n.kids {
			s.reason(kid, pointer(at, strconv.Itoa(i)), policy, level, depth+1)
		}
	case n.kind == isObject:
		if s.object(n, at, policy, level) {
			return
		}
		for i, key := range n.keys {
			// A set in OPA's form of reasons: a name with true, with its text or with its list.
			switch value, ok := n.kids[i].boolean(); {
			case ok && value:
				s.give(Reason{Text: key, Level: level, Pointer: pointer(at, key)})
			case !ok:
				s.reason(n.kids[i], pointer(at, key), key, level, depth+1)
			}
		}
	default:
		s.give(Reason{Text: n.text, Policy: policy, Level: level, Pointer: at})
	}
}

// object takes an object that is one reason.
func (s *shape) object(n *node, at, policy, level string) bool {
	r := Reason{Text: firstOf(n, textKeys), Policy: firstOf(n, policyKeys), Rule: firstOf(n, ruleKeys), Code: firstOf(n, codeKeys), Level: firstOf(n, levelKeys), Pointer: at}
	if r.Text == "" && r.Policy == "" && r.Rule == "" && r.Code == "" {
		return false
	}
	if r.Policy == "" {
		r.Policy = policy
	}
	if r.Level == "" {
		r.Level = level
	}
	if r.Text == "" {
		text, _ := n.json(maxText)
		r.Text = string(text)
	}
	s.give(r)
	return true
}

func (s *shape) give(r Reason) {
	for _, field := range []*string{&r.Text, &r.Policy, &r.Rule, &r.Code, &r.Level} {
		*field = cutText(*field)
	}
	// Many results repeat a reason: alone among reasons, and with its rule among violations.
	for i := range s.reasons {
		one := &s.reasons[i]
		switch {
		case one.Text != r.Text:
		case r.bare() || one.same(r):
			return
		case one.bare():
			*one = r
			return
		}
	}
	if len(s.reasons) >= maxReasons {
		s.more++
		return
	}
	s.reasons = append(s.reasons, r)
}
