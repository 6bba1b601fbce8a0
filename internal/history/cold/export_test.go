package cold

// Listing is how many questions wait for a listing of the archived days.
func (d *Days) Listing() int { return d.listing.flights.waiters() }

// Taking is how many questions wait for an inventory.
func (d *Days) Taking() int { return d.taking.flights.waiters() }

// Finding is how many questions wait for the reading of an archive. One question waits once for each archive.
func (d *Days) Finding() int { return d.finding.waiters() }

func (f *flights[T]) waiters() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.all {
		n += one.waiting
	}
	return n
}
