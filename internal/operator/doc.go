// Package operator lets people act: on an entry (hold, close, release, retry), on the disposal of archived folders, on what was
// downloaded, and on a ledger that is not sure of its entries (reconcile).
//
// It never acts by itself and decides nothing about a document: it offers the ledger the event of a named person, and the ledger's
// transition decides whether the act is allowed. It sends nothing but questions to the archive.
//
// Each act is one commit with the journal line of who acted. After a crash an act is committed or was not given; a folder that was
// claimed for a retry and has no entry is adopted by the next start. What a person began to commit is committed, even when
// the asker goes away.
package operator
