// Package collect opens, joins and closes the parts of `collector`: the listener for uploads, the publisher, HTTP for its own
// state, and the stop.
//
// It does not know how an upload gets its homes: package collector does.
package collect
