package ingest

import (
	"context"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// step is one kind of work: what its workers need to know of it. It decides what is done; a worker decides when.
type step struct {
	name   ledger.Step
	width  int           // tasks of all queues at once, see pool
	ahead  int           // tasks of a queue, at most, that wait with their intents committed, see pool.freeTasks
	batch  int           // entries in one task
	linger time.Duration // how long a batch that is not full waits for more
	eager  bool          // the next task is taken when one gives its slot back, and not when its outcome is on disk
	risky  bool          // it sends, moves or removes something: it does nothing in safe mode

	// target returns what all work of a queue needs; nil: nothing but the ledger.
	target func(queue string) Target
	// handle returns how an entry is handled; nil: it needs the queue's target, and batch go together.
	handle func(ledger.Entry, archive.Instant) handling
	// admit returns which entries of a queue may go now; nil: all. Sealing needs it for the room of a vault's packages
	// (TestSeal_I23_AFullVaultHoldsUpNoOther), disposal for its limit (TestDispose_I3_DisposalLimit), registering to know what a
	// person changed (TestRegister_I6_VaultsCountEachOthersTickets).
	admit func(queue string, now archive.Instant) (func(ledger.Entry) bool, error)
	// limit returns how many of the ready entries may go now, and when to ask again; zero: a change of an entry will wake the
	// worker. nil: all may go. Registering needs it: no more tickets than uploads that end in time
	// (TestRegister_I6_VaultsCountEachOthersTickets).
	limit func(ready []ledger.Entry) (n int, again time.Time)
	// maxTasks returns how many tasks of a queue may be done at once; nil: width. It is the limiter of the queue's target, see limiters.
	maxTasks func(queue string) int
	// tryBegin reports whether a task may begin beside the others of its queue, or alone, and books it if so; nil: it may. Uploading
	// needs it, see bookings.
	tryBegin func(e ledger.Entry, alone bool) bool
	// intend returns the events to commit before anything is done, and whether anything is done then.
	intend func(ledger.Entry, handling, archive.Instant) (evs []ledger.Event, act bool, err error)
	// do reaches the world. It returns one change for each entry, but for those that the end of ctx kept it from.
	do func(context.Context, []ledger.Entry) []ledger.Change
	// doUnannounced is done in the place of do where intend announced nothing; nil: do. Sending needs it to make a package again, and to ask about a recipient.
	doUnannounced func(context.Context, []ledger.Entry) []ledger.Change
	// followUp adds to an outcome the intents of the next step, and returns the tasks of that step; nil: nothing follows.
	followUp func(queue string, acts []ledger.Entry, outcome []ledger.Change) ([]ledger.Change, map[archive.Key]*task)
	// takeBack returns the outcome of an intent that is committed and not acted upon; nil: the next start goes on from it.
	takeBack func(ledger.Entry) ledger.Event
}

// handling is how an entry is handled. It is decided once for each task: a clock or a speed that is read twice may give two
// answers.
type handling struct {
	target Target    // that must work
	most   int       // entries, at most, in one task
	late   bool      // its window is over: that is committed, and nothing is done
	from   time.Time // not before then; zero: at once
}
