package cold_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
	"docket/internal/testkit/kafkatest"
)

// heldNone is the table of decisions without a day.
type heldNone struct{ archive.Table }

func (heldNone) Name() string { return "decision_logs" }

// TestInventory_ManyAtOnceTakeOnce: questions at the same time share an inventory, and no manifest is read twice.
func TestInventory_ManyAtOnceTakeOnce(t *testing.T) {
	t.Parallel()
	dir := archive.Dir(t.TempDir())
	year(t, dir, 2)
	alone := &overseen{Shelf: dir}
	v, err := days(alone).Inventory(t.Context(), inventory.Source{Table: heldNone{}})
	if err != nil {
		t.Fatal(err)
	}
	once, manifests, files := alone.reset()
	if len(files) != 0 || manifests != int64(len(v.Archives)) || manifests == 0 {
		t.Fatalf("%d manifests of %d archives, %v", manifests, len(v.Archives), files)
	}
	lists := make(chan struct{})
	shelf := &overseen{Shelf: dir, holdList: lists}
	d := days(shelf)
	const n = 50
	var asked sync.WaitGroup
	for range n {
		asked.Go(func() {
			v, err := d.Inventory(t.Context(), inventory.Source{Table: heldNone{}})
			if err != nil || int64(len(v.Archives)) != manifests {
				t.Errorf("%v, %+v", err, v)
			}
		})
	}
	kafkatest.Eventually(t, "one is taken, and the others wait for the next", func() bool { return d.Taking() == n })
	close(lists)
	asked.Wait()
	if listings, read, _ := shelf.reset(); listings > 2*once || read != manifests {
		t.Errorf("%d listings and %d manifests, one takes %d and %d", listings, read, once, manifests)
	}
	if _, err := d.Inventory(t.Context(), inventory.Source{Table: heldNone{}}); err != nil {
		t.Fatal(err)
	}
	if listings, read, _ := shelf.reset(); listings != once || read != 0 {
		t.Errorf("later: %d listings and %d manifests", listings, read)
	}
}

// TestInventory_EndsWithItsLast: an inventory for which nobody waits ends. The next question begins its own.
func TestInventory_EndsWithItsLast(t *testing.T) {
	t.Parallel()
	dir := archive.Dir(t.TempDir())
	year(t, dir, 1)
	d := days(&overseen{Shelf: dir})
	began := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := d.Inventory(ctx, inventory.Source{Table: waiting{began: began}, Today: archive.DayOf(time.Now())})
		ended <- err
	}()
	<-began
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if v, err := d.Inventory(t.Context(), inventory.Source{Table: heldNone{}}); err != nil || len(v.Archives) == 0 {
		t.Errorf("%v, %+v", err, v)
	}
}

// waiting is a table that answers once nobody waits for it.
type waiting struct {
	archive.Table
	began chan struct{}
}

func (waiting) Name() string { return "decision_logs" }

func (w waiting) Days(ctx context.Context, _ archive.Day) ([]archive.Held, error) {
	close(w.began)
	<-ctx.Done()
	return nil, ctx.Err()
}
