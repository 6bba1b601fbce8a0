package redact

import "docket/internal/record/decision"

// stretch is the place of a value; the zero value means none.
type stretch struct{ value, end int }

// spot remembers the places of erased and masked in the decision.
func (w *work) spot(in *decision.Inside) {
	switch {
	case in.Is(erased):
		w.told[0] = stretch{in.Value, in.End}
	case in.Is(masked):
		w.told[1] = stretch{in.Value, in.End}
	}
}

// tell adds the pointers that matched to erased and masked. closing is the place of the decision's last brace.
func (w *work) tell(closing int) {
	others := w.kept
	for i, field := range []string{erased, masked} {
		pointers, into := "", w.told[i]
		for j, hit := range w.hit {
			r := &w.rules[j]
			if !hit || r.drop != (field == erased) || into.end > 0 && lists(w.src[into.value:into.end], r.pointer) {
				continue
			}
			if pointers != "" {
				pointers += ","
			}
			pointers += r.quoted
		}
		switch {
		case pointers == "":
		case into.end > 0:
			w.addTo(into.value, into.end, pointers)
		default:
			comma := ""
			if others {
				comma = ","
			}
			w.put(closing, closing, comma+`"`+field+`":[`+pointers+"]")
			others = true
		}
	}
}

// addTo adds pointers to the value of erased or masked.
func (w *work) addTo(value, end int, pointers string) {
	switch w.src[value] {
	case 'n':
		w.put(value, end, "["+pointers+"]")
	case '[':
		in := decision.Into(w.src, value)
		if in.Next() {
			pointers = "," + pointers
		}
		w.put(end-1, end-1, pointers)
	default:
		w.put(value, end, "["+string(w.src[value:end])+","+pointers+"]")
	}
}

// lists reports whether an array has a text, so that none is added twice.
func lists(array []byte, text string) bool {
	if array[0] != '[' {
		return false
	}
	for in := decision.Into(array, 0); in.Next(); {
		if raw := array[in.Value:in.End]; raw[0] == '"' && decision.Text(raw) == text {
			return true
		}
	}
	return false
}
