package reader

import (
	"slices"
	"strings"
)

// Role is the meaning of an extractor's value.
type Role string

// The roles of an extractor.
const (
	RoleAllow    Role = "allow"    // true, or a word such as allow or permit: allowed; false, or a word such as deny: denied
	RoleDeny     Role = "deny"     // true, or a list, object or text that is not empty: denied; else allowed
	RoleReasons  Role = "reasons"  // text, or a list or an object of it
	RolePolicies Role = "policies" // names, or objects with a name and a result
	RoleRules    Role = "rules"    // as policies
	RoleSubject  Role = "subject"  // the subject: a pointer into input; all others are into result
)

func roles() []Role {
	return []Role{RoleAllow, RoleDeny, RoleReasons, RolePolicies, RoleRules, RoleSubject}
}

// Extractor says which value of a path's decisions has a role.
type Extractor struct {
	Path    string // whole, or all below one if it ends in "/*"; "*" is all
	Role    Role
	Pointer string
	steps   []string
}

// Extractors are from the settings. For their path and role they win over the known shapes.
type Extractors []Extractor

// ParseExtractors reads entries PATH=ROLE:/POINTER. An empty pointer means all of result. The error names the entry's
// position.
func ParseExtractors(list []string) (Extractors, error) {
	var all Extractors
	for i, text := range list {
		// A path of OPA may contain an equals sign, a role cannot: split at the last one before a role.
		one, ok := Extractor{}, false
		for _, role := range roles() {
			if at := strings.Index(text, "="+string(role)+":"); at > 0 && (!ok || at < len(one.Path)) {
				one, ok = Extractor{Path: strings.Trim(text[:at], "/"), Role: role, Pointer: text[at+len(role)+2:]}, true
			}
		}
		if !ok || one.Path == "" {
			return nil, wrong("extractor %d is not PATH=ROLE:/POINTER, with the ROLE allow, deny, reasons, policies, rules or subject", i+1)
		}
		steps, err := ParsePointer(one.Pointer)
		if err != nil {
			return nil, wrong("extractor %d: %v", i+1, err)
		}
		if one.Role == RoleSubject && len(steps) == 0 {
			return nil, wrong("extractor %d: a subject needs a pointer into input", i+1)
		}
		one.steps = steps
		all = append(all, one)
	}
	return all, nil
}

// of returns the extractors of a path and a role, the most specific first.
func (e Extractors) of(path string, role Role) []Extractor {
	path = strings.Trim(path, "/")
	var out []Extractor
	for _, one := range e {
		if one.Role == role && one.means(path) {
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, func(a, b Extractor) int { return b.closeness() - a.closeness() })
	return out
}

func (e Extractor) means(path string) bool {
	if e.Path == "*" {
		return true
	}
	if above, ok := strings.CutSuffix(e.Path, "/*"); ok {
		return strings.HasPrefix(path, above+"/")
	}
	return e.Path == path
}

func (e Extractor) closeness() int {
	if strings.HasSuffix(e.Path, "*") {
		return len(e.Path)
	}
	return 1 << 20 // exactly this path
}
