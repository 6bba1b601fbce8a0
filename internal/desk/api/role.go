package api

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"docket/internal/service/bearer"
)

// Role says what a caller may do. Each role includes those below it.
type Role uint8

// The roles. The zero value may do nothing.
const (
	Nobody   Role = iota
	Viewer        // reads, without payloads
	Auditor       // reads stored decisions with their payloads
	Operator      // changes letters: retry, resolve, payloads, dry runs, jobs up to [Config].OperatorLimit letters
	Admin         // also starts jobs without a limit
)

var roleNames = []string{"nobody", "viewer", "auditor", "operator", "admin"}

func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return roleNames[Nobody]
}

// roleOf reads a role's name; Nobody is not allowed.
func roleOf(name string) (Role, bool) {
	i := slices.Index(roleNames, name)
	return Role(max(i, 0)), i > 0
}

// names appear in the audit, so they contain nothing special for a terminal or a log line.
var names = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 ._@-]{0,62}[A-Za-z0-9])?$`)

// Token is a caller with a bearer token. Only the hash of the token is kept.
type Token struct {
	Name   string
	Role   Role
	secret bearer.Secret
}

// Client is a caller with a client certificate: Name is the certificate's common name.
type Client struct {
	Name string
	Role Role
}

// Auth has all callers who may use the API. The zero value has none.
type Auth struct {
	Tokens  []Token
	Clients []Client
}

// ParseTokens reads entries name:role:token, separated by white space, as in DOCKET_DESK_API_TOKENS. The token may be
// a hash and may expire, see [bearer.Parse]. A name may have several tokens of one role, so that they can be replaced
// one by one. The error has all complaints. They name an entry by its number and never quote it.
func ParseTokens(text string) ([]Token, error) {
	var tokens []Token
	var bad complaints
	for i, entry := range strings.Fields(text) {
		name, rest, _ := strings.Cut(entry, ":")
		role, rest, found := strings.Cut(rest, ":")
		r, known := roleOf(role)
		secret, err := bearer.Parse(rest)
		switch {
		case !found:
			bad.add(i, "is not name:role:token")
		case !names.MatchString(name):
			bad.add(i, "has a name that is not made of letters, digits, dots, dashes, underscores or @, or is longer than 64")
		case !known:
			bad.add(i, "has a role that is none of viewer, auditor, operator, admin")
		case err != nil:
			bad.add(i, err.Error())
		case slices.ContainsFunc(tokens, func(o Token) bool { return o.secret.Same(secret) }):
			bad.add(i, "has the token of an entry before it")
		case slices.ContainsFunc(tokens, func(o Token) bool { return o.Name == name && o.Role != r }):
			bad.add(i, "gives a name another role than an entry before it")
		default:
			tokens = append(tokens, Token{name, r, secret})
		}
	}
	return tokens, bad.err()
}

// ParseClients reads entries name:role, as in DOCKET_DESK_API_CLIENTS. Errors are like those of [ParseTokens].
func ParseClients(entries []string) ([]Client, error) {
	var clients []Client
	var bad complaints
	for i, entry := range entries {
		entry = strings.TrimSpace(entry)
		cut := max(strings.LastIndexByte(entry, ':'), 0)
		name, role := entry[:cut], strings.TrimPrefix(entry[cut:], ":")
		r, known := roleOf(role)
		switch {
		case cut == 0:
			bad.add(i, "is not name:role")
		case !names.MatchString(name):
			bad.add(i, "has a name that is not made of letters, digits, spaces, dots, dashes, underscores or @, or is longer than 64")
		case !known:
			bad.add(i, "has a role that is none of viewer, auditor, operator, admin")
		case slices.ContainsFunc(clients, func(o Client) bool { return o.Name == name }):
			bad.add(i, "has the name of an entry before it")
		default:
			clients = append(clients, Client{name, r})
		}
	}
	return clients, bad.err()
}

// GroupRole is a group of the OpenID provider. Its members have the role.
type GroupRole struct {
	Name string
	Role Role
}

// GroupRoles are all groups with a role.
type GroupRoles []GroupRole

// ParseGroups reads entries group:role, as in DOCKET_DESK_OIDC_GROUPS. A group may contain colons, but no comma. Errors
// are like those of [ParseTokens].
func ParseGroups(entries []string) (GroupRoles, error) {
	var groups GroupRoles
	var bad complaints
	for i, entry := range entries {
		entry = strings.TrimSpace(entry)
		cut := max(strings.LastIndexByte(entry, ':'), 0)
		name, role := entry[:cut], strings.TrimPrefix(entry[cut:], ":")
		r, known := roleOf(role)
		switch {
		case cut == 0:
			bad.add(i, "is not group:role")
		case !known:
			bad.add(i, "has a role that is none of viewer, auditor, operator, admin")
		case slices.ContainsFunc(groups, func(o GroupRole) bool { return o.Name == name }):
			bad.add(i, "has the group of an entry before it")
		default:
			groups = append(groups, GroupRole{name, r})
		}
	}
	return groups, bad.err()
}

// Role is the highest role of somebody's groups, or [Nobody].
func (g GroupRoles) Role(of []string) (highest Role) {
	for _, one := range g {
		if slices.Contains(of, one.Name) {
			highest = max(highest, one.Role)
		}
	}
	return highest
}

// Known returns those of somebody's groups that have a role.
func (g GroupRoles) Known(of []string) (known []string) {
	for _, one := range g {
		if slices.Contains(of, one.Name) {
			known = append(known, one.Name)
		}
	}
	return known
}

// complaints are the errors of entries, by number from 1.
type complaints []string

func (c *complaints) add(i int, what string) { *c = append(*c, fmt.Sprintf("entry %d %s", i+1, what)) }

func (c complaints) err() error {
	if len(c) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(c, "; "))
}

// Check returns an error if a name has two roles.
func (a Auth) Check() error {
	for _, c := range a.Clients {
		for _, t := range a.Tokens {
			if c.Name == t.Name && c.Role != t.Role {
				return fmt.Errorf("%s has one role by token and another by certificate; give both the same", c.Name)
			}
		}
	}
	return nil
}
