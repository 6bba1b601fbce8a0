package archive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// stepping is a table with one day, and the day itself. It cannot be taken out: a step that tries it is one too many.
type stepping struct {
	OpenDay
	where   Location
	lines   []string
	hashed  []string // that Postgres hashed for Read; nil: lines
	left    *Left
	unread  error // of left
	dropped bool
	needs   Needs
}

func (s *stepping) Name() string { return "decision_logs" }

func (s *stepping) Days(context.Context, Day) ([]Held, error) { return nil, nil }

func (s *stepping) Open(context.Context, Day) (OpenDay, error) { return s, nil }

func (s *stepping) Where(context.Context) (Location, error) { return s.where, nil }

func (s *stepping) Shape(context.Context) (Shape, error) { return Shape{Columns: fewColumns}, nil }

func (s *stepping) Source(context.Context) (Source, error) { return Source{ID: "abcdef"}, nil }

func (s *stepping) Read(_ context.Context, _ Shape, each func(line []byte) error) (Facts, error) {
	for _, line := range s.lines {
		if err := each([]byte(line)); err != nil {
			return Facts{}, err
		}
	}
	if s.hashed != nil {
		return Facts{Total: totalOf(s.hashed...)}, nil
	}
	return Facts{Total: totalOf(s.lines...)}, nil
}

func (s *stepping) Sum(context.Context, Shape) (Total, error) { return totalOf(s.lines...), nil }

func (s *stepping) Late(context.Context, func(context.Context, map[Identity]bool) error) error {
	return nil
}

func (s *stepping) Drop(_ context.Context, _ Shape, want Total, needs Needs) (bool, error) {
	s.needs = needs
	s.dropped = want == totalOf(s.lines...)
	return s.dropped, nil
}

func (s *stepping) Left(context.Context) (*Left, error) { return s.left, s.unread }

func (s *stepping) Close() {}

// An archive stops at the step at which it has to, with nothing taken out. The next run continues from there. A day that
// is out of the table is finished without a question.
func TestCarrier_StopsBetweenSteps(t *testing.T) {
	t.Parallel()
	day, _ := ParseDay("2026-03-04")
	for at, written := range map[Step]bool{StepOpened: false, StepWritten: true, StepVerified: true} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			table, over := &stepping{where: Attached, lines: fewLines(5)}, errors.New("the hours are over")
			var told, asked []Step
			c := Carrier{Table: table, Shelf: Dir(t.TempDir()), By: "desk", Docket: "test", Now: time.Now, Told: func(s Step) { told = append(told, s) }}
			c.GoOn = func(s Step) error {
				if asked = append(asked, s); s == at {
					return over
				}
				return nil
			}
			if _, err := c.Archive(t.Context(), day, false); !errors.Is(err, over) || table.dropped || told[len(told)-1] != at {
				t.Fatalf("%v, steps %v", err, told)
			}
			all, err := Whole(t.Context(), c.Shelf, "decision_logs", &day)
			if err != nil || (len(all) == 1) != written {
				t.Fatalf("%d archives, %v", len(all), err)
			}
			table.where, asked = Leaving, nil
			done, err := c.Archive(t.Context(), day, false)
			if err != nil || !done.Dropped || done.Reused != written || len(asked) != 0 || !slices.Contains(told, StepDropped) {
				t.Errorf("%+v, %v, asked at %v", done, err, asked)
			}
		})
	}
}

// An archive is of the rows that Postgres hashed. One whose lines are others is none, and nothing is taken out.
func TestArchive_WritesWhatPostgresHashed(t *testing.T) {
	t.Parallel()
	day, shelf := dayNamed(t, "2026-03-04"), Dir(t.TempDir())
	lines := fewLines(5)
	hashed := slices.Clone(lines)
	hashed[3] = lines[2] // as many rows
	table := &stepping{where: Attached, lines: lines, hashed: hashed}
	c := Carrier{Table: table, Shelf: shelf, By: "desk", Docket: "test", Now: time.Now}
	_, err := c.Archive(t.Context(), day, false)
	broken, is := errors.AsType[*BrokenError](err)
	if !is || !strings.Contains(broken.Problem, "do not match the count and hash of Postgres") || table.dropped {
		t.Fatalf("%v, dropped %v", err, table.dropped)
	}
	if all, err := Whole(t.Context(), shelf, "decision_logs", &day); err != nil || len(all) > 0 {
		t.Errorf("%d archives, %v", len(all), err)
	}
}

// A day that left the table before needs an archive of its database whose manifest cannot be read, too.
func TestCarrier_NeedsBrokenArchives(t *testing.T) {
	t.Parallel()
	const damaged, another = "decision_logs-2026-03-04-001-abcdef-00000000", "decision_logs-2026-03-04-001-3f9a2c-00000000"
	for _, left := range []*Left{nil, {}} {
		day, shelf := dayNamed(t, "2026-03-04"), Dir(t.TempDir())
		for _, name := range []string{damaged, another} {
			if err := shelf.Put(t.Context(), name+manifestSuffix, strings.NewReader("{")); err != nil {
				t.Fatal(err)
			}
		}
		table := &stepping{where: Leaving, lines: fewLines(5), left: left}
		c := Carrier{Table: table, Shelf: shelf, By: "desk", Docket: "test", Now: time.Now}
		done, err := c.Archive(t.Context(), day, false)
		want := []string{done.Archive}
		if left != nil {
			want = []string{damaged, done.Archive}
		}
		if err != nil || !done.Dropped || !slices.Equal(table.needs.Archives, want) {
			t.Errorf("%v, needs %v, want %v", err, table.needs, want)
		}
	}
}

func TestOnce_EachDay(t *testing.T) {
	t.Parallel()
	a, _ := ParseDay("2026-03-04")
	b, _ := ParseDay("2026-03-05")
	got := Once([]Held{{Day: b, Location: Leaving}, {Day: a, Location: Attached}, {Day: b, Location: Strays}})
	if want := []Held{{Day: b, Location: Leaving}, {Day: a, Location: Attached}}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestWaits_Errors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"busy": {errors.Join(ErrBusy), true}, "uncounted": {&UncountedError{}, true}, "refused": {&CannotError{}, false}, "storage": {&ShelfError{Err: ErrNone}, false}, "none": {nil, false},
		"another rule": {rule(true), true}, "a rule that is broken": {rule(false), false},
	} {
		if got := Waits(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

type rule bool

func (rule) Error() string { return "a rule" }

func (r rule) Waits() bool { return bool(r) }
