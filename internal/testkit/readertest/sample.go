package readertest

import (
	"encoding/json"
	"fmt"
	"time"

	"docket/internal/history/reader"
)

// Secret is in the payloads of [Decisions]. It is shown only on request.
const Secret = "alice-of-the-payload"

// Decisions makes n of several kinds, a minute apart, the last one a minute before now. Some contain control
// characters.
func Decisions(n int, now time.Time) []reader.Decision {
	all := make([]reader.Decision, n)
	for i := range all {
		all[i] = Decision(i, now.Add(-time.Duration(n-i)*time.Minute))
	}
	return all
}

// Decision makes the i-th of them, decided at a time.
func Decision(i int, at time.Time) reader.Decision {
	path := []string{"http/example/authz/allow", "cloud_access/device_posture/response", "authz/\x1b[31mred\x1b]0;title\a"}[i%3]
	service := []string{"checkout", "payments"}[i%2]
	by := fmt.Sprintf("10.0.0.%d:%d", i%4, 58000+i)
	opa, version, reqID := "5bf7d126-339c-49a0-aabe-d960791bad7f", "1.22.0", int64(i)
	yes, no := true, false
	d := reader.Decision{Row: reader.Row{
		ID: fmt.Sprintf("%08x-55e4-417a-b1d8-%012x", 0x4ca636c1+i*7919, i), Time: at, Path: &path, Service: &service, RequestedBy: &by, ReqID: &reqID,
		OPAID: &opa, OPAVersion: &version, Labels: json.RawMessage(fmt.Sprintf(`{"app":%q,"region":"kr-%d"}`, service, i%3)),
		Bundles: json.RawMessage(`{"main":{"revision":"r7\u001b[2J"}}`), Topic: "decision-logs", Partition: int32(i % 3), Offset: int64(1200 + i), StoredAt: at.Add(2 * time.Second),
	}}
	result := `"result":{"allow":false,"reasons":["no"]},`
	switch d.Verdict = reader.Verdicts()[i%5]; d.Verdict {
	case reader.Allowed:
		d.Allowed, result = &yes, `"result":true,`
	case reader.Denied:
		d.Allowed = &no
	case reader.Undefined:
		result = ``
	case reader.Error:
		result = `"error":{"code":"eval"},`
		d.Path, d.Service, d.RequestedBy, d.ReqID, d.OPAID, d.OPAVersion, d.Labels, d.Bundles = nil, nil, nil, nil, nil, nil, nil, nil
	case reader.Other:
		result = `"result":[7],`
	}
	d.Raw = json.RawMessage(fmt.Sprintf(`{"decision_id":%q,%s"input":{"user":%q,"n":%d,"odd":"\u001b[2J%s"}}`, d.ID, result, Secret, i, "\u202e"))
	return d
}
