// Package client asks a desk by its API, as the ports that commands ask a database by.
//
// Requests and answers have the types of package api, so a change of the API that breaks this client does not compile. A
// test holds each request against the document.
package client
