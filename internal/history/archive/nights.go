package archive

import "context"

// Nights archives days for a desk: decisions, and the dead letters beside them.
type Nights struct {
	Carrier Carrier
	Letters LettersCarrier
}

// Days returns the days of the table before a time, each once, those first that are out of the table.
func (n *Nights) Days(ctx context.Context, before Day) ([]Held, error) {
	held, err := n.Carrier.Table.Days(ctx, before)
	return Once(held), err
}

// Archive archives a day and drops it. goOn is asked at each step at which it may stop.
func (n *Nights) Archive(ctx context.Context, day Day, goOn func(Step) error) (Archived, error) {
	c := n.Carrier
	c.GoOn = goOn
	return c.Archive(ctx, day, false)
}

// LetterDays returns the days before a time with closed dead letters that no archive has.
func (n *Nights) LetterDays(ctx context.Context, before Day) (days []Day, err error) {
	held, err := n.Letters.Table.Days(ctx, before)
	for _, h := range held {
		days = append(days, h.Day)
	}
	return days, err
}

// ArchiveLetters archives the dead letters that were closed on a day.
func (n *Nights) ArchiveLetters(ctx context.Context, day Day) (LettersArchived, error) {
	return n.Letters.Archive(ctx, day)
}

// Age gives the files of the archive the storage class of their age. A directory has no classes.
func (n *Nights) Age(ctx context.Context, goOn func() error) (files int, err error) {
	shelf, ok := n.Carrier.Shelf.(Aging)
	if !ok {
		return 0, nil
	}
	return shelf.Age(ctx, goOn)
}
