package ingest

import (
	"sync"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// backlog knows the sealed packages of each service queue that were not uploaded yet, and which
// of them hold a ticket or are about to be given one.
//
// Promise I6 needs it: the planner compares a batch with the tickets of all vaults (TestRegister_I6_VaultsCountEachOthersTickets). So does
// I23: what waits in one vault does not stop the packing for another (TestBacklog_I23_HeldCountsForNothing). The ledger alone does not
// serve for either: it would be read for each batch, and does not know a grant before its commit (TestBacklog_I6_UploadedWhileTheLedgerIsRead).
type backlog struct {
	mu      sync.Mutex
	packs   map[archive.Key]pack             // guarded by mu
	n       map[string]int                   // of them; guarded by mu
	tickets map[string]map[archive.Key]int64 // sizes of those granted; guarded by mu
	booked  map[archive.Key]bool             // while the ledger is read: what was booked meanwhile; guarded by mu
}

func (b *backlog) clear() {
	b.packs, b.n, b.tickets = map[archive.Key]pack{}, map[string]int{}, map[string]map[archive.Key]int64{}
}

type pack struct {
	queue   string // of the calls to its service, see [ledger.ServiceQueueOf]
	state   ledger.State
	bytes   int64
	granted bool
}

// update takes note of the committed state of an entry.
func (b *backlog) update(e ledger.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.booked != nil {
		b.booked[e.Key] = true
	}
	b.updateLocked(e, b.packs[e.Key].granted)
}

// updateLocked is update for a caller that holds mu. An entry that is being registered counts as
// granted only where grant said so: one that a restart found so holds nothing yet. What a
// person must let go first does not count: it would keep the others from being packed.
func (b *backlog) updateLocked(e ledger.Entry, was bool) {
	b.forget(e.Key)
	if e.State < ledger.Packaged || e.State > ledger.Sending || e.Hold || e.NeedsReconcile {
		return
	}
	granted := e.State > ledger.Registering || e.State == ledger.Registering && was
	b.put(e.Key, pack{ledger.ServiceQueueOf(e), e.State, e.Package.Size, granted})
}

func (b *backlog) put(k archive.Key, p pack) {
	b.packs[k] = p
	b.n[p.queue]++
	if !p.granted {
		return
	}
	if b.tickets[p.queue] == nil {
		b.tickets[p.queue] = map[archive.Key]int64{}
	}
	b.tickets[p.queue][k] = p.bytes
}

func (b *backlog) forget(k archive.Key) {
	if p, known := b.packs[k]; known {
		delete(b.packs, k)
		b.n[p.queue]--
		delete(b.tickets[p.queue], k)
	}
}

// grant books that an entry is about to be registered, before that is committed.
func (b *backlog) grant(e ledger.Entry) { b.setGranted(e.Key, true) }

// revoke takes back a grant whose commit came to nothing.
func (b *backlog) revoke(k archive.Key) { b.setGranted(k, false) }

func (b *backlog) setGranted(k archive.Key, granted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, known := b.packs[k]
	if !known || p.state > ledger.Registering || !granted && p.state == ledger.Registering {
		return
	}
	b.forget(k)
	p.granted = granted
	b.put(k, p)
}

// countSealed returns how many packages of a service queue wait.
func (b *backlog) countSealed(queue string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n[queue]
}

// grantedSizes returns the sizes of what holds a ticket, in a service queue itself and in all others that
// count, and how many of them are its own.
func (b *backlog) grantedSizes(queue string, counts func(queue string) bool) (own int, sizes []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for of, granted := range b.tickets {
		if of == queue {
			own = len(granted)
		} else if !counts(of) {
			continue
		}
		for _, size := range granted {
			sizes = append(sizes, size)
		}
	}
	return own, sizes
}

// beginRead remembers from now on what is updated: what is read from the ledger meanwhile may be older.
func (b *backlog) beginRead() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.booked = map[archive.Key]bool{}
}

// endRead replaces all that was not updated meanwhile by what was read.
func (b *backlog) endRead(es []ledger.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := map[archive.Key]bool{}
	for k := range b.packs {
		left[k] = !b.booked[k]
	}
	for _, e := range es {
		was := b.packs[e.Key].granted
		if granting := was && e.State == ledger.Packaged; !b.booked[e.Key] && !granting {
			b.updateLocked(e, was)
		}
		left[e.Key] = false
	}
	for k, gone := range left {
		if gone {
			b.forget(k)
		}
	}
	b.booked = nil
}

// recallBacklog books what the ledger holds: at the start, and whenever a person acted
// on entries that the engine did not see. The ledger is read beside the work: no commit waits
// for the read.
func (c *Engine) recallBacklog() error {
	c.backlog.beginRead()
	var es []ledger.Entry
	for _, s := range []ledger.Step{ledger.Register, ledger.Upload} {
		queues, err := c.cfg.Index.Queues(s)
		if err != nil {
			return err
		}
		for _, queue := range queues {
			if err := c.eachWaiting(s, queue, func(e ledger.Entry) { es = append(es, e) }); err != nil {
				return err
			}
		}
	}
	c.backlog.endRead(es)
	return nil
}

// recallBacklogIfOld recalls the backlog at the start, and where Wake asked for it. Only the dispatcher calls it: nobody decides by what is
// just being read again.
func (c *Engine) recallBacklogIfOld() error {
	if !c.isBacklogOld.Swap(false) {
		return nil
	}
	return c.recallBacklog()
}
