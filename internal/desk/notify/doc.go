// Package notify has the channels that bring short messages to people: the log, Docket's webhooks, and all services
// of the shoutrrr library (Slack, e-mail, Teams and others).
//
// It does not know the subjects of the messages. Sending never waits and never fails for the caller: each channel has
// a queue of its own and drops its oldest message if the queue is full. No address and no token appears in a log
// line, an error or a metric. A channel is named by its kind and its position among the entries, as "slack 2".
//
// # The webhook
//
// A webhook gets a POST with Content-Type application/json:
//
//	{
//	  "version": 1,
//	  "id": "5d1c…",                       // the same for each try of one message
//	  "sent_at": "2026-03-01T12:00:00Z",
//	  "kind": "alert",                     // alert, resolved, report
//	  "key": "unresolved",                 // the subject: an alert and its resolved have the same
//	  "severity": "warning",               // info, warning, error
//	  "title": "12 dead letters are unresolved",
//	  "lines": ["…", "…"]
//	}
//
// Any answer from 200 to 299 means success. Redirects are not followed. The URL parameter docket_secret is removed
// before sending. With it, the header Docket-Signature is "sha256=" and the hex of HMAC-SHA256 over the body.
// Delivery is at least once if the receiver answers, so a receiver must recognise repeats by id.
package notify
