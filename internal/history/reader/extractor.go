package reader

import (
	"slices"
	"strings"
)

// Role is what an extractor finds.
type Role string

// The roles of an extractor.
const (
	RoleAllow    Role = "allow"    // true, or a word as allow or permit: allowed; false, or a word as deny: denied
	RoleDeny     Role = "deny"     // true, or a list or object or text that is not empty: denied; else allowed
	RoleReasons  Role = "reasons"  // text, or a list or an object of it
	RolePolicies Role = "policies" // names, or objects with a name and what became of it
	RoleRules    Role = "rules"    // as policies
	RoleSubject  Role = "subject"  // who asked: a pointer into input, where all others are into result
)

func roles() []Role {
	return []Role{RoleAllow, RoleDeny, RoleReasons, RolePolicies, RoleRules, RoleSubject}
}

// Extractor says where decisions of a path say what.
type Extractor struct {
	Path    string // whole, or all below one where it ends in "/*"; "*" is all
	Role    Role
	Pointer string
	steps   []string
}

// Extractors are by setting; for a path and a role they stand above what is known of common shapes.
type Extractors []Extractor

// ParseExtractors reads PATH=ROLE:/POINTER each; an empty pointer is all of result. The error names the place in the list.
func ParseExtractors(list []string) (Extractors, error) {
	var all Extractors
	for i, text := range list {
		// A path of OPA may hold an equals sign, a role does not: the last one before a role is meant.
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

// of are the extractors of a path and a role, those that name it most closely first.
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
	return 1 << 20 // exactly this one
}
