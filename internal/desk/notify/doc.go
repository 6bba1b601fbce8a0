// Package notify holds the channels on which short messages reach people: the log, webhooks of our own making, and whatever
// the shoutrrr library knows (Slack, e-mail, Teams and others).
//
// It stays free of what the messages are about. Sending never waits and never fails for whoever sends: each channel has a
// queue of its own and drops its oldest message where that is full. No address and no token ever appears in a log line, an
// error or a metric: a channel is called by its kind and its place among the entries, as "slack 2".
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
//	  "key": "unresolved",                 // what it is about: an alert and its resolved have the same
//	  "severity": "warning",               // info, warning, error
//	  "title": "12 dead letters are unresolved",
//	  "lines": ["…", "…"]
//	}
//
// Any answer from 200 to 299 means that it was taken; redirects are not followed. Where the URL has the parameter
// docket_secret, that is cut off before sending, and the header Docket-Signature is "sha256=" and the hex of HMAC-SHA256
// over the body. Delivery is at least once where the receiver answers, so a receiver goes by id.
package notify
