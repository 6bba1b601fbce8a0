//go:build integration

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// evil is a decision that somebody made to hide it, and what has to be found of it.
type evil struct {
	kind  string
	value string
	id    string // as it can be read; empty: it cannot
	code  string // of its dead letter; empty: it has a row
	twin  bool   // its row has a storable twin
	alone bool   // inside an array it condemns its neighbours
	gzip  bool   // it is sent compressed
}

// hostileDay is when most of them were decided: a day that can be archived.
const hostileDay = "2026-03-04"

// evils makes at least n of them, the same for the same seed. Two of one id follow each other.
func evils(seed uint64, n int) (all []evil) {
	random := rand.New(rand.NewPCG(seed, 18))
	at := func(i int) string {
		return hostileDay + "T" + time.Unix(int64(i), 0).UTC().Format("15:04:05") + "Z"
	}
	total := 0
	for _, k := range evilKinds {
		total += k.weight
	}
	for i := 0; len(all) < n; i++ {
		pick := random.IntN(total)
		if i < len(evilKinds) { // each kind once at least
			all = append(all, named(evilKinds[i], i, at(i), random)...)
			continue
		}
		for _, k := range evilKinds {
			if pick -= k.weight; pick < 0 {
				all = append(all, named(k, i, at(i), random)...)
				break
			}
		}
	}
	return all
}

func named(k evilKind, i int, at string, random *rand.Rand) []evil {
	made := k.make(fmt.Sprintf("evil-%d-%s", i, k.name), at, random)
	for j := range made {
		made[j].kind = k.name
	}
	return made
}

type evilKind struct {
	name   string
	weight int
	make   func(id, at string, random *rand.Rand) []evil
}

// member gives the kind of a decision with id and time in order and one member more.
func member(code string, twin bool, text string) func(id, at string, random *rand.Rand) []evil {
	return func(id, at string, _ *rand.Rand) []evil {
		return []evil{{value: object(id, at, text), id: id, code: code, twin: twin, alone: code == "syntax"}}
	}
}

func object(id, at, more string) string {
	return fmt.Sprintf(`{"decision_id":"%s","timestamp":"%s","path":"e2e/evil","result":true,%s}`, id, at, more)
}

// whole gives the kind of a decision whose text is made of an id and a time.
func whole(code, format string, readable bool) func(id, at string, random *rand.Rand) []evil {
	return func(id, at string, _ *rand.Rand) []evil {
		e := evil{value: strings.NewReplacer("ID", id, "AT", at).Replace(format), code: code}
		if readable {
			e.id = id
		}
		return []evil{e}
	}
}

// dated gives the kind of a decision of another time.
func dated(code, at string) func(id, at string, random *rand.Rand) []evil {
	return func(id, _ string, _ *rand.Rand) []evil {
		return []evil{{value: object(id, at, `"input":1`), id: id, code: code}}
	}
}

// evilKinds are in the order of contract and findings: bytes that jsonb cannot hold, numbers, depth, doubled names, sizes, times, ids of others.
var evilKinds = []evilKind{
	{"plain", 10, member("", false, `"input":{"user":"mara"}`)},
	{"nul", 10, member("", true, `"input":{"note":"x\u0000y"}`)},
	{"nul-in-key", 5, member("", true, `"input":{"a\u0000b":1}`)},
	{"nul-in-path", 5, func(id, at string, _ *rand.Rand) []evil {
		return []evil{{value: `{"decision_id":"` + id + `","timestamp":"` + at + `","path":"e2e\u0000/evil"}`, id: id, twin: true}}
	}},
	{"surrogate", 5, member("", true, `"input":["\ud800","\udc00x"]`)},
	{"surrogate-in-key", 5, member("", true, `"input":{"\udfff":{"deep":[1,2]}}`)},
	{"large-number", 5, member("", true, `"input":1e999999`)},
	{"small-number", 5, member("", true, `"input":[0,1e-20000]`)},
	{"long-text-of-numbers", 1, member("", true, `"input":[`+strings.Repeat("1e30000,", 999)+`1e30000]`)},
	{"largest-numeric", 1, member("", true, `"input":[`+strings.Repeat("1e131071,", 99)+`-1e131071]`)},
	{"digits", 1, member("", false, `"input":`+strings.Repeat("1234567890", 300))},
	{"req-id", 5, member("", false, `"req_id":99999999999999999999`)},
	{"deep", 1, member("", false, `"input":`+strings.Repeat("[", 900)+strings.Repeat("]", 900))},
	{"too-deep", 1, member("syntax", false, `"input":`+strings.Repeat("[", 10_001)+strings.Repeat("]", 10_001))},
	{"doubled-at-the-top", 5, member("duplicate_key", false, `"result":false`)},
	{"doubled-inside", 5, member("", false, `"input":{"a":1,"a":2}`)},
	{"doubled-id", 5, whole("duplicate_key", `{"decision_id":"ID","decision_id":"another","timestamp":"AT"}`, true)},
	{"long-id", 1, func(id, at string, _ *rand.Rand) []evil {
		id += strings.Repeat("i", 2000-len(id))
		return []evil{{value: object(id, at, `"input":1`), id: id}}
	}},
	{"too-long-id", 1, func(id, at string, _ *rand.Rand) []evil {
		id += strings.Repeat("i", 2001-len(id))
		return []evil{{value: object(id, at, `"input":1`), id: id, code: "out_of_range"}}
	}},
	{"large", 1, func(id, at string, random *rand.Rand) []evil {
		return []evil{{value: object(id, at, `"input":"`+strings.Repeat(fmt.Sprint(random.Uint64()), 2000)+`"`), id: id}}
	}},
	{"nul-in-id", 5, func(id, at string, _ *rand.Rand) []evil {
		return []evil{{value: object(id+`\u0000`, at, `"input":1`), id: id + "\ufffd", code: "out_of_range"}}
	}},
	{"surrogate-in-id", 5, func(id, at string, _ *rand.Rand) []evil {
		return []evil{{value: object(id+`\ud800`, at, `"input":1`), id: id + "\ufffd", code: "out_of_range"}}
	}},
	{"terminal-in-id", 5, func(id, at string, _ *rand.Rand) []evil {
		return []evil{{value: object(id+`\u001b]0;x\u0007\u202e\u009b`, at, `"input":"\u001b[2J"`), id: id + "\x1b]0;x\a\u202e\u009b"}}
	}},
	{"escaped-id", 5, func(id, at string, _ *rand.Rand) []evil {
		return []evil{{value: object(strings.Replace(id, "e", `\u0065`, 1)+`\/\"`, at, `"input":1`), id: id + `/"`}}
	}},
	{"empty-id", 3, whole("missing_field", `{"decision_id":"","timestamp":"AT","input":"ID"}`, false)},
	{"no-id", 3, whole("missing_field", `{"Decision_ID":"ID","timestamp":"AT"}`, false)},
	{"null-id", 3, whole("missing_field", `{"decision_id":null,"timestamp":"AT","input":"ID"}`, false)},
	{"number-for-id", 3, whole("wrong_type", `{"decision_id":7,"timestamp":"AT","input":"ID"}`, false)},
	{"no-time", 5, whole("missing_field", `{"decision_id":"ID","Timestamp":"AT"}`, true)},
	{"first-year", 2, dated("", "0001-01-01T00:00:00Z")},
	{"last-year", 2, dated("", "9999-12-31T23:59:59.999999999Z")},
	{"year-0", 2, dated("", "0000-06-01T00:00:00Z")},
	{"no-such-day", 5, dated("wrong_type", "2026-02-30T00:00:00Z")},
	{"year-of-five-digits", 5, dated("wrong_type", "12026-03-04T00:00:00Z")},
	{"yesterday", 5, dated("wrong_type", "yesterday")},
	{"path-is-a-number", 5, whole("wrong_type", `{"decision_id":"ID","timestamp":"AT","path":7}`, true)},
	{"labels-are-a-list", 5, whole("wrong_type", `{"decision_id":"ID","timestamp":"AT","labels":[]}`, true)},
	{"requested-by-nobody", 5, whole("wrong_type", `{"decision_id":"ID","timestamp":"AT","requested_by":{}}`, true)},
	{"torn", 5, func(id, at string, _ *rand.Rand) []evil {
		return []evil{{value: object(id, at, `"input":{"a":`), id: id, code: "syntax", alone: true}}
	}},
	{"not-utf-8", 5, func(id, at string, _ *rand.Rand) []evil {
		return []evil{{value: object(id, at, "\"input\":\"\xff\xfe\""), id: id, code: "syntax", alone: true}}
	}},
	{"torn-gzip", 1, func(id, at string, _ *rand.Rand) []evil {
		return []evil{{value: object(id, at, `"input":1`), id: id, code: "syntax", alone: true, gzip: true}}
	}},
	{"number-for-a-decision", 3, func(_, _ string, random *rand.Rand) []evil {
		return []evil{{value: fmt.Sprint(random.Uint64()), code: "wrong_type"}}
	}},
	{"id-of-another", 10, func(id, at string, _ *rand.Rand) []evil {
		return []evil{
			{value: object(id, at, `"input":"first"`), id: id},
			{value: object(id, at, `"input":"second"`), id: id, code: "id_conflict"},
		}
	}},
	{"id-of-another-twin", 5, func(id, at string, _ *rand.Rand) []evil { // their twins are one
		return []evil{
			{value: object(id, at, `"input":"\u0000"`), id: id, twin: true},
			{value: object(id, at, `"input":"\ud800"`), id: id, code: "id_conflict"},
		}
	}},
	{"id-at-another-time", 5, func(id, at string, _ *rand.Rand) []evil {
		return []evil{
			{value: object(id, at, `"input":1`), id: id},
			{value: object(id, strings.Replace(at, "Z", ".000001Z", 1), `"input":2`), id: id},
		}
	}},
}
