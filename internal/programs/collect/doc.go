// Package collect is what `collector` opens, joins and closes: the listener for uploads, the publisher, HTTP for its own
// state, and the stop.
//
// It stays free of what becomes of an upload: that is told in package collector.
package collect
