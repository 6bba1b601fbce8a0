// Package collector takes decision logs as OPA uploads them and answers 2xx only once each decision of an upload has a home:
// acknowledged by Kafka in the topic of decisions, or, where it cannot be stored, in the dead-letter topic.
//
// It stays free of settings, listeners and of how records come to brokers.
//
// # What OPA does
//
// OPA posts a gzipped JSON array (Content-Encoding: gzip, upload_size_limit_bytes of it, 32 KiB) to the path of its setting
// resource (/logs, /logs/PARTITION). Any status from 200 to 299 is success; until the summer of 2022 it was 200 alone, which is why the answer
// is 200. After any other status, whatever it is, it keeps the upload, waits (100 ms, longer each time, max_delay_seconds at
// most) and sends it again, unchanged, until it is taken or pushed out of OPA's buffer by newer ones. It does not look at
// Retry-After, which is for proxies and other clients, nor at the body. Headers of an answer that take longer than response_header_timeout_seconds (10 s) are a failure, too: PublishTimeout
// is to be below that. So every answer but 2xx has to be one of
//
//   - later (408, 429, 500, 503, and 400 where the body broke off): the same upload may be taken the next time;
//   - never (400, 413, 415, 401): the same upload comes again, in vain, until somebody changes it or a limit. That must be rare
//     and must show: a line at error with reason, size and sender, and docket_collector_refused_total.
//
// That is why a decision that cannot be stored is no reason to refuse its upload: it is dead-lettered, the others are kept, and
// the answer is 200. What comes twice is absorbed behind Kafka, by the decision's identity and by the dead-letter id.
//
// # Homes
//
// internal/record/decision alone says what a decision is. A good one is a record of its own, its value the exact bytes; a bad one is
// a dead letter without a place in Kafka ([envelope.Unplaced]), whose id hangs on the topic and the value alone, so that it is
// the same whenever and in whatever upload it comes. One that the brokers refuse as too large is offered gzipped, then gzipped
// to the dead-letter topic, then with the necessary headers alone. If that is refused as well, the upload is answered 413, never
// 2xx; its other decisions are in Kafka by then.
//
// # Redaction
//
// Dropping and masking comes before everything that leaves the process, the key too: a key that is masked is the mask, one that is
// dropped is the decision_id, so that settings do not allow either. A subject of more than 256 bytes is keyed by its hash. A bad decision that is a JSON object is redacted like a good one. Where there are rules and no rule
// can look into what came (a line that is not JSON, an element that is no object) its bytes go nowhere: the dead letter's value is
// {"docket_withheld":REASON,"bytes":N}. It still counts as what it is, with reason and size, but it cannot be retried, and two
// of one reason and size have one id. Without rules it is forwarded as it came.
//
// # Limits
//
// Uploads bounds how many are under way, Memory what all of them take: bodies, what they inflate to, and an estimate, on the high
// side, of what decoding, redacting and publishing add, which is taken before any of it is done: from counts of bytes alone while half
// of Memory is free, and what was too much is given back. Nothing is allocated because a header says so; what gzip says of its size is
// believed up to 32 times the upload's own. A body has BodyTimeout from its headers on, that of somebody who is refused too. Nobody waits for memory: who does not get it is answered 429, or 413 if he would not
// get it alone. Beside Memory there are connections, the publisher's buffers, what pools keep between uploads, and, after a
// publish that was not answered, the bytes that it may still look at.
package collector
