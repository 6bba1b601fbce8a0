// Package redact takes values out of a decision, or masks them, by JSON pointer, and leaves every other byte as it was.
//
// It stays free of Kafka and of who sets the rules.
//
// A pointer is one of RFC 6901 from the root of the decision: /input/password, /labels/team, /nd_builtin_cache/http.send. A
// segment * stands for every member of an object and every element of an array, which OPA's own masks have no word for; a
// member whose name is * cannot be named apart. As in OPA the pointers of what was there are told in the fields erased and masked,
// here as the rule has them, * included, so that a rule is told once and no name is carried over. Other than in OPA every pointer is about the decision as it came, so that of two elements
// of an array the second keeps its index, and what is not there is not made.
//
// Where a name stands twice all of its values go, however it is written: a reader may see either.
package redact
