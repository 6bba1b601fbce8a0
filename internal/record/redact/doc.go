// Package redact drops or masks values of a decision by JSON pointer, and leaves every other byte unchanged.
//
// It imports no Kafka, and does not know who sets the rules.
//
// A pointer is that of RFC 6901 from the root of the decision: /input/password, /labels/team,
// /nd_builtin_cache/http.send. A segment * means every member of an object and every element of an array. OPA's own
// masks have no such segment. A member with the name * cannot be named alone.
//
// As in OPA, the fields erased and masked list the pointers that matched. Here they list the rules, * included, so
// that each rule is listed once and no name from the decision appears. Unlike in OPA, every pointer is about the
// original decision. So the second of two array elements keeps its index, and missing values are not created.
//
// If a name occurs twice, all of its values are redacted, however the name is written: a reader may use either.
package redact
