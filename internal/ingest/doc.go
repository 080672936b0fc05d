// Package ingest has the steps of a document: what is done with each entry, from
// the claimed folder to its last place. Each step is one function that commits what
// it intends, waits for a slot, acts, and commits the outcome. [engine.Engine]
// decides when a step begins; a queue is what waits for one vault, or for the disk
// of one drop folder.
//
// It knows packing, moving and the services only by the small interfaces that it
// declares. Entries change by events that the ledger commits and by nothing else. A
// faulty document never delays another one. A fault of the environment opens the
// circuit breaker of its [Target] and never ends a document.
//
// After a crash nothing needs to be repaired here: the next start asks the ledger the
// same question again. The end of [Engine.Run] differs from a crash in two things:
// calls under way may go on for a few seconds, and intents that nobody acted upon are
// taken back.
package ingest
