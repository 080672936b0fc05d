// Package readings lets the whole pipeline, from the drop folder to the receipt, work against every plausible
// reading of what the service's specification leaves open: each form of an answer, of an error, of a redirect and of
// credentials that a deployed service may have is one named row.
//
// It holds nothing but tests. Every row drops folders for two vaults, lets a
// real daemon with a real ledger work against the emulator until all is
// archived, and then holds the run to the one checker and to what the service
// saw. If a reading is one that a person must put right, the row says in which
// words the person is told, that no document suffers meanwhile, and that all
// goes on by itself afterwards.
//
// The rows of the PDF upload hold its client alone against the emulator: what a ticket says, what an error means, and what the
// service holds afterwards.
//
// Most rows live on virtual time without a network; those about connections use loopback sockets. No process is
// killed here: package simulation tests what a crash during each call leaves behind.
package readings
