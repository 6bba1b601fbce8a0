// Package collector takes decision logs as OPA uploads them. It answers 2xx only once each decision of an upload has a
// home: Kafka acknowledged it in the topic of decisions. If it cannot be stored there, Kafka acknowledged it in the
// dead-letter topic.
//
// It stays free of settings, listeners and of how records come to brokers.
//
// # How OPA behaves
//
// OPA posts a gzipped JSON array (Content-Encoding: gzip) to the path of its setting resource (/logs, /logs/PARTITION).
// The array has upload_size_limit_bytes, by default 32 KiB. Any status from 200 to 299 is success. Until the summer of
// 2022 it was 200 alone, so the answer here is 200. After any other status OPA keeps the upload. It waits 100 ms, longer
// each time, max_delay_seconds at most. It sends the upload again, unchanged, until it is taken or newer ones push it out
// of OPA's buffer. OPA looks neither at the body of an answer nor at Retry-After, which is for proxies and other clients.
// Headers of an answer that take longer than response_header_timeout_seconds (10 s) are a failure, too. So PublishTimeout
// has to be shorter. Every answer but 2xx has to be one of
//
//   - later (408, 429, 500, 503, and 400 where the body broke off): the same upload may be taken the next time;
//   - never (400, 413, 415, 401): the same upload comes again, in vain, until somebody changes it or a limit. That must be rare
//     and must show: a line at error with reason, size and sender, and docket_collector_refused_total.
//
// So an upload is not refused because a decision cannot be stored. That decision is dead-lettered, the others are kept,
// and the answer is 200. A decision that comes twice is absorbed behind Kafka, by its identity or by the dead-letter id.
//
// # Homes
//
// internal/record/decision alone says what a decision is. A good one is a record of its own, with the exact bytes as its
// value. A bad one is a dead letter without a place in Kafka ([envelope.Unplaced]). Its id depends on the topic and the
// value alone, so it is the same in every upload. A decision that the brokers refuse as too large is offered gzipped. The
// next offers are gzipped to the dead-letter topic, then with the necessary headers alone. If that is refused as well, the
// upload is answered 413, never 2xx. Its other decisions are in Kafka by then.
//
// # Redaction
//
// Fields are dropped and masked before anything leaves the process, the key included. A masked key is the mask, and a
// dropped one is the decision_id. So settings allow neither. A subject of more than 256 bytes is keyed by its hash. A bad
// decision that is a JSON object is redacted like a good one. With rules, an upload may hold bytes that no rule can look
// into: a line that is not JSON, or an element that is not an object. These bytes are not kept. The value of the dead
// letter is {"docket_withheld":REASON,"bytes":N}. It still counts under its reason and size, but it cannot be retried. Two
// of one reason and size have one id. Without rules it is forwarded as it came.
//
// # Limits
//
// Uploads bounds how many are under way. Memory bounds the memory of all of them: bodies, inflated bodies, and an estimate
// of what decoding, redacting and publishing add. The estimate is on the high side, and is taken before the work begins.
// While half of Memory is free, it comes from counts of bytes alone, and the excess is given back. No header decides an
// allocation. The size that gzip states is believed up to 32 times the upload's own. A body has BodyTimeout from its
// headers on, also if its sender is refused. Nobody waits for memory. An upload that does not get it is answered 429, or
// 413 if it would not fit alone. Beside Memory there are connections, the publisher's buffers, and memory that pools keep
// between uploads. After a publish without an answer there are also the bytes that it may still look at.
package collector
