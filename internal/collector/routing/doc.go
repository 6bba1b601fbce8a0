// Package routing chooses the lane of each decision that the collector takes. Rules send decisions to the urgent lane.
// Shares send to the bulk lane what a sender uploads beyond its share: later, but never lost and never refused.
//
// It knows no client, no topic and no settings but the texts of two of them.
//
// # Shares
//
// A share belongs to each value of a label, in decisions a second, with ten seconds of it at once ([burstOf]). Labels come
// with the decisions, so anybody who may upload can invent values. These hold, whatever other senders upload:
//
//   - A client that keeps within the share with all its decisions together never loses its lane. Condition: no other client
//     uploads the same values, and at most [mostClients] clients are active.
//   - A value that is not settled has no bucket of its own. All of these of one client share one bucket. So a client that
//     invents a value for each decision has one share in all.
//   - A value settles once it occurred [settledAfter] times while it was watched. Then it has its own bucket, and nobody
//     else draws from that. It loses it only to a value with more decisions in the last minutes.
//   - A decision without the label counts as one more value. To leave the label out gains nothing. The urgent share that
//     no setting gives to a label is the exception: it is by the label that OPA sets, or else by client.
//   - Memory is bounded: [mostValues] settled values, as many candidates, [mostClients] clients, and names of 256 bytes.
//
// These do not hold: a client that repeats each of its invented values has up to [mostValues] shares. A client that uploads
// the label of another one draws from its share. The rights of clients close the second way. The share "client" closes the
// first: it counts by the token or certificate, which no decision can invent.
package routing
