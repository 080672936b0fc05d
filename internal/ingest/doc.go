// Package ingest is the engine: it asks the ledger what is due and does it, for every entry, step by step. It has one
// worker for each step and queue; a queue is what waits for one vault, or for the disk of one drop folder. It has one
// circuit breaker for each [Target]. It knows packing, moving and the services only by the small interfaces that it
// declares.
//
// A worker commits the intents of what is due, does it, and commits the outcomes. The do function of a step is the only
// code that reaches the world. Entries change by events that the ledger commits and by nothing else. A task whose intents
// are committed waits for a free slot in memory for a moment; a crash loses nothing by that, because the ledger holds the
// intents.
//
// Whatever hangs, fails or piles up in one queue costs the others nothing: each may always have one task done. A faulty
// document never delays another one. A fault of the environment opens a breaker and never ends a document.
//
// After a crash nothing needs to be repaired here: the next start asks the ledger the same question again. The end of
// [Engine.Run] differs from a crash in two things: calls under way may go on for a few seconds, and intents that nobody
// acted upon are taken back.
package ingest
