package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"docket/internal/audit/inspect"
	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/history/archive"
	"docket/internal/history/lookup"
	"docket/internal/kafka"
	"docket/internal/postgres/db"
	"docket/internal/programs/cli/term"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
	"docket/internal/service/config"
)

// WhereIs is the command that tells where a record is and what happens next.
func WhereIs() Command {
	var since moment
	var spools list
	var within time.Duration
	var asJSON bool
	return Command{
		Name: "where-is", Args: "RECORD", Text: "Find where a record or decision is now, and what happens next (read-only).",
		Example: "  %s where-is decision-logs/3/12034\n" +
			"  %[1]s where-is e5e72bf0-077f-4b3a-8169-32d13cfbaa31 --since 3d",
		Flags: func(f *flag.FlagSet) {
			f.Var(&since, "since", "search the topics since `TIME` if no row names the record (default 24h)")
			f.DurationVar(&within, "within", inspect.FindLimits.Within, "search for a decision_id for `DURATION` at most (default 30s)")
			f.Var(&spools, "spool", "search the spool in `DIR` instead of DOCKET_SPOOL_DIR; can be repeated")
			f.BoolVar(&asJSON, "json", false, "print JSON")
		},
		More: "RECORD is a whole decision_id, or TOPIC/PARTITION/OFFSET[/INDEX] in a topic of Docket. INDEX is the place of a\n" +
			"decision inside its Kafka record, from 0. A decision_id is looked for in the rows, the ledger of dead letters,\n" +
			"unread, parked and dead-lettered records, the spools of this host, and the archives (DOCKET_ARCHIVE_TO). Each\n" +
			"place that was not searched completely is named. If nothing has it, the source topics are searched, which can\n" +
			"take long. With DOCKET_LANES the topics of all lanes are searched, and the lane of a record is named.",
		Uses: []string{"DOCKET_KAFKA_BROKERS", "DOCKET_DATABASE_URL", "DOCKET_SPOOL_DIR"},
		Exit: [2]string{"each decision is stored, parked, spooled, dead-lettered or not read yet", "not found, or not known as a place was not searched completely; or not written to Kafka yet, or the search failed"},
		Run: func(env Env, args []string) int {
			if len(args) != 1 || args[0] == "" {
				return misuse(env, "give one record like decision-logs/3/12034, or one decision_id", "where-is")
			}
			if within <= 0 {
				return misuse(env, "--within must be more than 0", "where-is")
			}
			if env.AskDesk != nil {
				if len(spools) > 0 || since.given() || within != inspect.FindLimits.Within {
					return misuse(env, "--since, --within and --spool need the database: a desk searches its own spools, the last 24h of the topics, and as long as it does", "where-is")
				}
				return whereOfDesk(env, args[0], asJSON)
			}
			return runWhereIs(env, inspect.ParseQuery(args[0]), since.or(24*time.Hour), inspect.Options{Spools: spools, Within: within}, asJSON)
		},
	}
}

func runWhereIs(env Env, q inspect.Query, since time.Time, o inspect.Options, asJSON bool) int {
	s, warnings, ok := whole(env)
	if !ok {
		return Misuse
	}
	warn(env, warnings)
	o.Progress = func(line string) { say(env.Stderr, "%v\n", line) }
	if env.Shelf != nil {
		o.Shelf = func(where string) (archive.Shelf, error) { return env.Shelf(where, s) }
	}
	ctx, end := UntilSignal(env)
	defer end()
	if s.OfAllShards() || len(s.EveryShard()) > 1 {
		return whereInShards(ctx, env, s, q, since, o, asJSON)
	}
	found, err := whereIn(ctx, s, q, since, o)
	if err != nil {
		return unlookedOrUnopened(env, err)
	}
	if asJSON {
		return showWhereJSON(env.Stdout, s, found)
	}
	return showWhere(env.Stdout, s, found)
}

// unlooked prints why the search failed, and a hint.
func unlooked(env Env, err error) int {
	if errors.Is(err, context.Canceled) {
		return Failed
	}
	say(env.Stderr, "%s: %v\n", env.Called(), err)
	var of *kafka.FaultError
	hint := db.Hint(err)
	if asked := (interface{ Hint() string })(nil); env.AskDesk != nil && errors.As(err, &asked) {
		hint = asked.Hint()
	}
	if hint != "" && !errors.As(err, &of) {
		say(env.Stderr, "%s\n", term.Lines(hint))
	}
	return Failed
}

func showWhere(w io.Writer, s config.Settings, found *inspect.Whereabouts) int {
	result := Done
	all := len(found.Records) + len(found.Refused)
	for i := range found.Found {
		if !found.Tells(&found.Found[i]) {
			all++
		}
	}
	if all > 1 {
		say(w, "%s claim this decision_id\n\n", term.Counted(int64(all), "record"))
	}
	for i := range found.Records {
		r := &found.Records[i]
		if i > 0 {
			say(w, "\n")
		}
		teller := teller{w: w, settings: s, now: found.At, record: r, looked: found.Looked, forgotten: found.Forgotten, standby: found.Standby}
		if !teller.tell() {
			result = Failed
		}
	}
	for i := range found.Refused {
		e := &found.Refused[i]
		if e.Cause.Kind == envelope.Foreign {
			say(w, "dead letter at %s/%d/%d (%s), %s in the ledger; nothing proves that Docket wrote it\n  docket dlq show %s\n",
				plain(e.Found.Topic), e.Found.Partition, e.Found.Offset, e.Cause.Code, e.State, e.ID[:12])
			continue
		}
		say(w, "refused by the collector at %s (%s), %s in the ledger; it never was in %s\n  docket dlq show %s\n",
			e.FirstFailedAt.UTC().Format(time.RFC3339), e.Cause.Code, e.State, e.Origin.Topic, e.ID[:12])
	}
	for i := range found.Found {
		if !found.Tells(&found.Found[i]) {
			say(w, "%s\n", plainly(found.Found[i].Text(found.At)))
		}
	}
	if all == 0 {
		say(w, "%snot found in %s\n", unsure(found), strings.Join(found.Looked, ", "))
		result = Failed
	}
	for _, of := range found.Lacks() {
		say(w, "not searched completely: %s\n", plainly(of))
	}
	for _, of := range found.Forgotten {
		say(w, "given up: %s\n", plainly(of))
	}
	return result
}

// unsure says that an id which was not found may still exist.
func unsure(found *inspect.Whereabouts) string {
	if len(found.Lacks()) == 0 {
		return ""
	}
	return "not known, as not every place was searched completely: "
}

// Homes are the homes of a decision in words, with the next step, one line each. The settings of the spool and
// of parking are not needed.
func Homes(s config.Settings, found *inspect.Whereabouts, r *inspect.Record, d *inspect.Decision) []string {
	var text bytes.Buffer
	t := teller{w: &text, settings: s, now: found.At, record: r, looked: found.Looked, forgotten: found.Forgotten, standby: found.Standby}
	t.decision(d)
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")[1:]
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// teller puts the homes of one record into words.
type teller struct {
	w        io.Writer
	settings config.Settings
	now      time.Time
	record   *inspect.Record
	looked   []string
	// forgotten are places that were given up on purpose.
	forgotten []string
	standby   bool // the database may be behind
}

// tell prints everything about the record; false: a decision of it lacks a home.
func (t *teller) tell() bool {
	r := t.record
	name := fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset)
	if lane := t.settings.LaneName(r.Topic); lane != "" {
		name += " (lane " + lane + ")"
	}
	switch {
	case r.Ahead:
		say(t.w, "%s is not written yet: the partition holds offsets %s to %s\n", name, term.Grouped(r.Start), term.Grouped(r.End-1))
		return false
	case r.Gone && !t.ours():
		say(t.w, "%s is from another source topic than %s; if it was the topic of a lane, DOCKET_LANES has to name the lane\n", name, strings.Join(t.settings.SourceTopics(), ", "))
	case r.Gone:
		say(t.w, "%s was deleted from the source topic, which starts at %s now: to find its row, search by decision_id\n", name, term.Grouped(r.Start))
	default:
		say(t.w, "%s, produced %s, %s\n", name, at(r.Produced), term.Counted(int64(len(r.Decisions)), "decision"))
	}
	fine := len(r.Decisions) > 0
	for i := range r.Decisions {
		fine = t.decision(&r.Decisions[i]) && fine
	}
	if len(r.Decisions) == 0 {
		say(t.w, "not found in %s\n", strings.Join(t.looked, ", "))
	}
	return fine
}

func (t *teller) decision(d *inspect.Decision) bool {
	title := fmt.Sprintf("[%d]", d.Index)
	if d.ID != "" {
		title += " " + plain(d.ID) + stamp(", ts ", d.Time)
	}
	if d.Refused != "" {
		title += " cannot be decoded: " + Named(d.Refused)
	}
	say(t.w, "%s\n", title)
	housed := false
	for _, row := range d.Rows {
		housed = t.row(d, row) || housed
	}
	for i := range d.Forwarded {
		housed = t.forwarded(d, &d.Forwarded[i]) || housed
	}
	for i := range d.Elsewhere {
		f, nothing := &d.Elsewhere[i], ""
		if f.Where == lookup.InArchive {
			nothing = ". Nothing to do."
		}
		say(t.w, "  %s%s\n", plainly(f.Text(t.now)), nothing)
		housed = true
	}
	if housed {
		return true
	}
	return t.homeless(d)
}

// row prints a row; false: the row belongs to another decision.
func (t *teller) row(d *inspect.Decision, row inspect.Row) bool {
	switch {
	case !row.Equal:
		say(t.w, "  conflict: the row with the same decision_id and ts has another payload; stored %s, first read at %v\n", at(row.StoredAt), row.Place)
		return false
	case row.Place == d.Place:
		say(t.w, "  row: stored %s, ts %s. Nothing to do.\n", at(row.StoredAt), at(row.Time))
	default:
		say(t.w, "  duplicate: an equal row was stored %s, first read at %v. Nothing to do.\n", at(row.StoredAt), row.Place)
	}
	return true
}

// forwarded prints a forwarded record; false: it is not a home any more.
func (t *teller) forwarded(d *inspect.Decision, f *inspect.Forwarded) bool {
	where := fmt.Sprintf("%s/%d/%d", f.Found, f.At.Partition, f.At.Offset)
	switch f.Home {
	case home.Spooled:
		say(t.w, "  spooled in %s, for %s. %s\n", f.Found, f.To, recovery(f.Found))
	case home.Parked:
		if f.Settled {
			say(t.w, "  was parked at %s, attempt %d, %s; the replayer has finished with it\n", where, f.Attempt, Named(f.Code))
			return false
		}
		say(t.w, "  parked at %s, attempt %d, %s. %s\n", where, f.Attempt, Named(f.Code), t.replay(f))
	case home.Exhausted:
		say(t.w, "  dead letter of the replayer, after its last attempt, at %s, %s%s, dead-letter id %s%s. %s\n", where, Named(f.Code), stamp(", ", f.FailedAt), f.Entry, message(f), next(f))
	default:
		say(t.w, "  dead letter at %s, %s%s, dead-letter id %s%s. %s\n", where, Named(f.Code), stamp(", ", f.FailedAt), f.Entry, message(f), next(f))
	}
	return true
}

const again = "Nothing happens by itself: fix the cause, then produce the value to the source topic again."

// unasked is about a dead letter of which it is not known whether a desk has it.
const unasked = "Whether a desk has it is not known, as its ledger was not read completely. If none has it, fix the cause, then produce the value to the source topic again."

// next says what can be done about a dead letter: by the ledger where it has it.
func next(f *inspect.Forwarded) string {
	switch {
	case f.Letter == nil && f.Left != nil && f.Left.State == ledger.SurplusArchived:
		return fmt.Sprintf("It is in archive %s and not in the ledger, as its client brought too many: `docket restore --dead-letters` enters it.", plain(f.Left.ArchivedIn))
	case f.Letter == nil && f.Left != nil:
		return "It is not in the ledger, as its client brought too many: a desk enters it later; `docket dlq surplus` lists such."
	case f.Letter == nil && f.Unasked:
		return unasked
	case f.Letter == nil:
		return again
	}
	id := f.Entry
	if len(id) > shownID {
		id = id[:shownID]
	}
	switch f.Letter.State {
	case ledger.Processing:
		return fmt.Sprintf("It is being retried by %s: `docket dlq show %s --history` shows the result.", plain(f.Letter.By), id)
	case ledger.Resolved:
		return fmt.Sprintf("It is RESOLVED in the ledger by %s: %s. Nothing to do.", plain(f.Letter.By), strings.TrimSuffix(plain(f.Letter.Why), "."))
	}
	cure := "fix the cause, then `docket dlq retry " + id + "`"
	if f.Kind == string(envelope.Decode) {
		cure = "`docket dlq edit " + id + "` changes its payload and retries it"
	}
	return fmt.Sprintf("It is %s in the ledger: %s; `docket dlq show %s` explains it.", f.Letter.State, cure, id)
}

// shownID is how many characters of a dead letter's id are enough for the commands.
const shownID = 12

func message(f *inspect.Forwarded) string {
	if f.Message == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(plain(f.Message), ".")
}

// recovery says when a spooled record is published.
func recovery(file string) string {
	if strings.Contains(file, ".oversize_") {
		return "It is too large for the broker: raise max.message.bytes of that topic. It is tried again every hour and at each start."
	}
	return "The program that owns the directory publishes it within a minute after Kafka accepts records again."
}

// replay says when a parked record is tried again.
func (t *teller) replay(f *inspect.Forwarded) string {
	if t.record.Replayers == 0 {
		return "No member in group " + t.settings.ParkingGroup + ": start the parking-replayer."
	}
	due := f.NotBefore
	if limit := f.Stamp.Add(t.settings.ParkingMaxBackoff); t.settings.ParkingMaxBackoff > 0 && due.After(limit) {
		due = limit // as the replayer counts it
	}
	if left := due.Sub(t.now); left > 0 {
		return fmt.Sprintf("It is replayed in %s.", short(left))
	}
	return fmt.Sprintf("It is due: the replayer replays it after the %s before it.", term.Counted(f.Before, "parked record"))
}

// homeless prints a decision without a home; true: it is not read yet.
func (t *teller) homeless(d *inspect.Decision) bool {
	r := t.record
	switch {
	case r.Gone:
		say(t.w, "  not found in %s\n", strings.Join(t.looked, ", "))
		return false
	case r.Committed < 0:
		say(t.w, "  not read yet: group %s has committed nothing in this partition. %s\n", t.group(), t.reading())
		return true
	case r.Offset >= r.Committed:
		say(t.w, "  not read yet: %s before it. %s\n", term.Counted(r.Offset-r.Committed, "record"), t.reading())
		return true
	}
	if d.Unsought {
		say(t.w, "  committed, but not found in %s\n  Archives were not searched for it: run `%s`.\n", strings.Join(t.looked, ", "), term.Command(string(config.Consumer)+" where-is", []string{d.ID}))
		return false
	}
	if t.standby {
		say(t.w, "  committed, but not found in %s\n  It may be stored all the same: %s, and search again.\n", strings.Join(t.looked, ", "), lookup.StandbyBehind)
		return false
	}
	unless := "This"
	if len(t.forgotten) > 0 {
		unless = "Unless it was in a place that was given up on purpose, this"
	}
	say(t.w, "  committed, but not found in %s\n  %s should never happen: run `%s verify --from %s/%d/%d`, and search the spools of the other hosts.\n",
		strings.Join(t.looked, ", "), unless, config.Consumer, r.Topic, r.Partition, r.Offset)
	return false
}

// ours reports whether the record is of the topic of a lane.
func (t *teller) ours() bool {
	_, ours := t.settings.Source(t.record.Topic)
	return ours
}

// group returns the consumer group that reads the record's topic.
func (t *teller) group() string {
	l, _ := t.settings.Source(t.record.Topic)
	return l.Group
}

func (t *teller) reading() string {
	if t.record.Readers == 0 {
		return "No member in group " + t.group() + ": start the consumer."
	}
	return "The consumer will read it; if not, /readyz says why it holds."
}

// Named is a code with its name.
func Named(code string) string {
	if v, ok := errclass.Lookup(code); ok && v.Name != "" && v.Name != code {
		return code + " (" + v.Name + ")"
	}
	if code == "" {
		return "without a code"
	}
	return plain(code)
}

// plainly is plain for a text of our own that is longer, and quotes names of others.
func plainly(text string) string {
	shown := fmt.Sprintf("%+q", text)
	return strings.ReplaceAll(shown[1:len(shown)-1], `\"`, `"`)
}

// plain shortens a text and escapes it in ASCII.
func plain(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "..."
	}
	shown := fmt.Sprintf("%+q", text)
	return strings.ReplaceAll(shown[1:len(shown)-1], `\"`, `"`)
}

func at(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

func stamp(what string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return what + at(t)
}
