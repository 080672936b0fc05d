// Package emulator is the remote archive service as a separate, strict server: registration of documents, an object
// store behind real pre-signed URLs, archiving that takes its time, status, index, download, vault list and tokens. It
// is written from the service's specification in its own words and shares nothing with the clients that are tested
// against it: a misreading on one side shows as a failure, not as agreement.
//
// It has opinions. What the specification forbids is refused, and what a correct client would never do although it
// cannot be refused (other bytes under one bumId, credentials sent to the object store, two registrations of one
// clientUUID that both hold content, a download beyond what the test grants) is remembered as a violation. Readings
// switch between the plausible meanings of what the specification leaves open; Faults make it fail in both forms, before
// and after the work was done.
//
// It never starts a goroutine, never talks to the network by itself and never uses another clock than the one it was
// given: states are worked out when they are asked for, so a whole archive year passes in a test within milliseconds.
//
// After a crash it is what it was: every fact is one line of journal.jsonl in its directory, written before the answer
// leaves, and the lines are replayed by the function that applied them first. Killing it loses nothing that it
// answered. It does not sync to the disk: the loss of power is not among the things it stands up to.
//
// Further interfaces of the service join in routes (server.go): a handler registered there gets the same
// authentication, faults and journal as those of the archive interface.
package emulator
