// Package intake is the engine of what comes in: it lists the extracts of the accounts-payable system, takes each into custody file
// by file, and acknowledges it when everything of it is held, if that is configured.
//
// Every call that the service may count or that changes something there has its intent in the ledger before it leaves, and its outcome
// after. Nothing is acknowledged before each file of it is durable and digested here and the list of its files, asked for again, named
// no other one. An extract is given up only where a whole list leaves it out and the service, asked by its number, does not know it;
// missing rights, faults of the way and full disks end nothing. No file is ever removed or replaced.
//
// If extracts are archived too, each file of one that is held is put into a
// drop folder, and the acknowledgement waits for that. A file that a crash has
// put there twice has the same identity both times, so the archive has it once.
//
// After a crash nothing needs to be repaired here: [Engine.Run] asks the ledger what is due and goes on. A download that was under way
// stays counted, and begins anew from its first byte. What custody holds whole and the ledger does not know, as after it was put back, is
// verified and adopted.
package intake
