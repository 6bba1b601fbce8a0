package reader

import "strconv"

// speak takes names of policies or rules, and their outcomes.
func (s *shape) speak(n *node, at, kind string, depth int) {
	switch {
	case !n.there() || depth > mostNested:
	case n.kind == isString:
		s.named(n.text, kind, "", "", at)
	case n.kind == isArray:
		for i, kid := range n.kids {
			s.speak(kid, pointer(at, strconv.Itoa(i)), kind, depth+1)
		}
	case n.kind == isObject:
		if name, own := nameOf(n, kind); name != "" {
			s.named(name, own, outcome(n), n.get("weight").scalar(), at)
			return
		}
		for i, key := range n.keys {
			kid := n.kids[i]
			switch {
			case kid.kind == isBool:
				s.named(key, kind, passed(kid.text == "true"), "", pointer(at, key))
			case kid.kind == isObject:
				s.named(key, kind, outcome(kid), kid.get("weight").scalar(), pointer(at, key))
			}
		}
	}
}

// nameOf returns the name of a policy or a rule, and the member that has it.
func nameOf(n *node, kind string) (name, own string) {
	policy, rule := firstOf(n, policyKeys), firstOf(n, ruleKeys)
	switch {
	case kind == "policy" && policy != "":
		return policy, "policy"
	case kind == "rule" && rule != "", policy == "":
		return rule, kind
	}
	return policy, "policy"
}

func passed(ok bool) string {
	if ok {
		return "passed"
	}
	return "failed"
}

// outcome returns whether a policy passed, if it says so.
func outcome(n *node) string {
	for _, key := range []string{"passed", "pass", "allow", "allowed", "ok", "compliant", "valid"} {
		if value, ok := n.get(key).boolean(); ok {
			return passed(value)
		}
	}
	for _, key := range []string{"denied", "deny", "failed", "violated"} {
		if value, ok := n.get(key).boolean(); ok {
			return passed(!value)
		}
	}
	return ""
}

func (s *shape) named(name, kind, outcome, weight, at string) {
	if name == "" {
		return
	}
	name = cutText(name)
	for i := range s.spoke {
		one := &s.spoke[i]
		if one.Name == name && one.Kind == kind && (one.Outcome == outcome || outcome == "") {
			return
		}
	}
	if len(s.spoke) < maxReasons {
		s.spoke = append(s.spoke, Spoke{Name: name, Kind: kind, Outcome: outcome, Weight: cutText(weight), Pointer: at})
	}
}

// scores finds a score that was compared with a threshold.
func (s *shape) scores(result *node) {
	for _, n := range []*node{result.get("score"), result} {
		score := n.get("score")
		if !score.is(isNumber) {
			continue
		}
		found := Score{Score: score.text}
		for _, key := range []string{"max_score", "max"} {
			if m := n.get(key); m.is(isNumber) && found.Max == "" {
				found.Max = m.text
			}
		}
		for _, key := range []string{"threshold", "min_score", "required"} {
			if m := n.get(key); m.is(isNumber) && found.Threshold == "" {
				found.Threshold = m.text
			}
		}
		s.score = &found
		return
	}
}
