package console

import (
	"encoding/json"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/record/escape"
)

// functions are those of the templates. None returns HTML, so every result is escaped.
func functions(a assets) template.FuncMap {
	return template.FuncMap{
		"asset": a.url, "day": func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
		"time": timeText, "iso": escape.Instant, "clock": func(t time.Time) string { return t.UTC().Format("15:04:05") },
		"n": count, "deref": deref, "same": ledger.SamePerson, "decision": decisionURL, "never": func() time.Time { return time.Time{} },
		"tone": tone, "percent": percent, "short": short, "value": valueText, "raw": func(j json.RawMessage) string { return shown(string(j)) },
		"dict": dict, "freshness": freshnessText, "duration": durationText, "add": func(a, b int) int { return a + b }, "str": func(v any) string { return fmt.Sprint(v) },
		"subjectURL": subjectURL, "notFinished": archive.NotFinished, "bytes": sizeText, "revisionURL": func(r state.Rate) string { return revisionURL(&r) }, "total": func(r state.Rate) int64 { return r.Allowed + r.Denied }, "rate": func(r state.Rate) float64 { return r.DenyRate() },
		"dayURL": func(d archive.CalendarDay) string { return dayURL(&d) }, "shown": shown, "ms": func(ns int64) string { return strconv.FormatFloat(float64(ns)/1e6, 'f', 2, 64) + " ms" },
	}
}

// timeText is a time in UTC, to the millisecond where it has any.
func timeText(t time.Time) string {
	if t.Nanosecond() != 0 {
		return t.UTC().Format("2006-01-02 15:04:05.000")
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// deref returns what a pointer of the API's shapes points to, and "" for nil.
func deref(v any) any {
	switch v := v.(type) {
	case *string:
		if v != nil {
			return *v
		}
	case *int64:
		if v != nil {
			return *v
		}
	case *int:
		if v != nil {
			return *v
		}
	case *bool:
		if v != nil {
			return *v
		}
	case *time.Time:
		if v != nil {
			return *v
		}
	}
	return ""
}

// count writes a number with a thin gap between thousands: 12,345.
func count(v any) string {
	var n int64
	switch v := v.(type) {
	case int:
		n = int64(v)
	case int64:
		n = v
	case *int64:
		if v == nil {
			return "not known"
		}
		n = *v
	}
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// sizeText is a size for people: 1.5 GB.
func sizeText(n int64) string {
	const unit = 1000
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	size, name := float64(n), ""
	for _, name = range []string{"kB", "MB", "GB", "TB", "PB"} {
		if size /= unit; size < unit {
			break
		}
	}
	return strconv.FormatFloat(size, 'f', 1, 64) + " " + name
}

// tone is the colour of a verdict or a state.
func tone(v any) string {
	switch fmt.Sprint(v) {
	case "allowed", "hot", "hot, and archived", "archived", "RESOLVED", "DONE", "FRESH", "stored":
		return "good"
	case "denied", "error", "FAILED", "HOLDING", "STOPPED", "dead", "refused", "dropped":
		return "bad"
	case "undefined", "PENDING", "PROCESSING", "PARTIAL", "CATCHING_UP", "WAITING", "RUNNING", "at work", "left off":
		return "warn"
	}
	return ""
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

// short is the beginning of an id.
func short(id string) string {
	if len(id) <= 11 {
		return id
	}
	return strings.ToValidUTF8(id[:10], "") + "…"
}

// valueText is a value of an explanation as text.
func valueText(v reader.Value) string {
	if v.Cut != "" {
		return shown(v.Cut) + "…"
	}
	return shown(string(v.JSON))
}

func durationText(ms *int64) string {
	if ms == nil {
		return "not known"
	}
	d := time.Duration(*ms) * time.Millisecond
	switch {
	case d < time.Second:
		return "less than a second"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	}
	return strconv.FormatFloat(d.Hours(), 'f', 1, 64) + " h"
}

// freshnessText says a freshness in a sentence.
func freshnessText(f reader.Freshness) string {
	switch f {
	case reader.Fresh:
		return "All that had reached Kafka some seconds ago is here or counted below."
	case reader.CatchingUp:
		return "Decisions that may belong here still wait in Kafka."
	case reader.Holding:
		return "A consumer has made no progress for 30 s. Decisions that may belong here wait in Kafka."
	case reader.Archived:
		return "Some of these are only in the archive."
	case reader.NotFound:
		return "Nothing was found, and nothing that may fit waits for longer."
	case reader.Partial:
		return "A place was not searched completely, or it is not known what waits."
	}
	return "It is not known how complete this is."
}

// dict passes several values to a template.
func dict(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return out
}
