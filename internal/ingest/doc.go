// Package ingest is the conductor: it asks the ledger what is due and does it,
// step by step, for every entry. It owns the goroutines of the pipeline and the
// pauses of routes; it knows packing, moving and the service only through the
// small interfaces declared here.
//
// It never holds work of its own: no queue, no list of documents. It never changes
// an entry but by events that the ledger commits, and never acts before the intent
// to act is committed: each step says what it intends, the runner commits that, and
// only then is the step's do called, the one place that reaches the world. A faulty
// document never delays another, and a fault of the environment pauses a route and
// never ends a document.
//
// After a crash nothing needs to be repaired here: the next start asks the ledger
// the same question again. Ending a run and a crash differ only in that a call
// under way is given a few seconds to end.
package ingest
