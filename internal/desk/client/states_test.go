package client_test

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"docket/internal/desk/api"
	"docket/internal/desk/client"
	"docket/internal/history/reader"
	"docket/internal/history/state"
)

// statesOf answers each question with the same values, and keeps the last question.
type statesOf struct {
	state state.State
	flip  state.Flip
	mark  state.Mark
	lacks []reader.Missed
	asked state.FlipQuery
}

func (s *statesOf) lacking(ctx context.Context) error {
	if s.lacks == nil {
		return nil
	}
	return reader.Told(ctx, &reader.PartialError{Missed: s.lacks})
}

func (s *statesOf) States(ctx context.Context, _ string, _ []string, _ int) ([]state.State, state.Mark, error) {
	return []state.State{s.state}, s.mark, s.lacking(ctx)
}

func (s *statesOf) Flips(ctx context.Context, q state.FlipQuery) ([]state.Flip, state.Mark, error) {
	s.asked = q
	return []state.Flip{s.flip}, s.mark, s.lacking(ctx)
}

// ofDesk is a client of a desk with these states.
func ofDesk(t *testing.T, s state.Store) client.States {
	t.Helper()
	tokens, err := api.ParseTokens("aude:auditor:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	h, err := api.New(api.Config{Lease: time.Minute}, api.Ports{Book: struct{ api.Book }{}, States: s}, api.Auth{Tokens: tokens}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return served(t, h.ServeHTTP).States()
}

// fill gives each field of a value another value than its zero.
func fill(t *testing.T, v reflect.Value, n *int64) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 11, 20, 0, 0, int(*n), 1000, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		name, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, name, n)
		fill(t, value, n)
		v.SetMapIndex(name, value)
	case reflect.String:
		v.SetString("v" + time.Duration(*n).String())
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("fill knows no %s", v.Kind())
	}
}

// No field of a state, a flip or a mark is lost between the store of a desk and the caller of its client.
func TestStates_NoFieldLost(t *testing.T) {
	t.Parallel()
	s, n := &statesOf{}, int64(0)
	fill(t, reflect.ValueOf(&s.state).Elem(), &n)
	fill(t, reflect.ValueOf(&s.flip).Elem(), &n)
	fill(t, reflect.ValueOf(&s.mark).Elem(), &n)
	s.mark.States = 0 // the API has no number of rows
	desk := ofDesk(t, s)
	states, mark, err := desk.States(t.Context(), "alice", nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	ofStates := s.mark
	ofStates.Places, ofStates.Newest = nil, nil // of flips alone
	if diff := cmp.Diff([]state.State{s.state}, states) + cmp.Diff(ofStates, mark); diff != "" {
		t.Errorf("states (-store +client):\n%s", diff)
	}
	flips, mark, err := desk.Flips(t.Context(), state.FlipQuery{Limit: 1, Backward: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]state.Flip{s.flip}, flips) + cmp.Diff(s.mark, mark); diff != "" {
		t.Errorf("flips (-store +client):\n%s", diff)
	}
}

// No field of a question for flips is lost either. Places take the place of the number.
func TestFlips_QuestionWhole(t *testing.T) {
	t.Parallel()
	s := &statesOf{mark: state.Mark{Places: state.Places{"a": 1}}}
	desk := ofDesk(t, s)
	var q state.FlipQuery
	var n int64
	fill(t, reflect.ValueOf(&q).Elem(), &n)
	q.Places = state.Places{"a": 7, "b": state.FromNow}
	if _, _, err := desk.Flips(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	q.After, q.Before = 0, 0
	if diff := cmp.Diff(q, s.asked); diff != "" {
		t.Errorf("-asked +reached the store:\n%s", diff)
	}
	s.mark.Places = nil
	for _, q := range []state.FlipQuery{{After: 4, Limit: 1}, {Before: 4, Limit: 1}} {
		if _, _, err := desk.Flips(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(q, s.asked); diff != "" {
			t.Errorf("-asked +reached the store:\n%s", diff)
		}
	}
}

// An answer without a shard names it, and is an answer all the same.
func TestStates_ShardMissing(t *testing.T) {
	t.Parallel()
	s := &statesOf{lacks: []reader.Missed{{Shard: "b", Err: context.DeadlineExceeded}}}
	desk := ofDesk(t, s)
	states, _, err := desk.States(t.Context(), "alice", nil, 5)
	flips, _, of := desk.Flips(t.Context(), state.FlipQuery{Limit: 1, Backward: true})
	if len(states) != 1 || len(flips) != 1 {
		t.Errorf("%d states, %d flips", len(states), len(flips))
	}
	for _, err := range []error{err, of} {
		if partial := reader.AsPartial(err); partial == nil || !slices.Equal(partial.Missing(), []string{"b"}) {
			t.Error(err)
		}
	}
}

// Places that are none are an error, and the flips with them are not shown.
func TestFlips_WrongPlaces(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"next_places":"x"}`, `{"newest_places":"a=-2"}`} {
		c := served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text)) // the client is gone
		})
		if _, _, err := c.States().Flips(t.Context(), state.FlipQuery{Limit: 1}); err == nil {
			t.Errorf("%s has no error", text)
		}
	}
}
