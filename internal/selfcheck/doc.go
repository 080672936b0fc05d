// Package selfcheck checks a ledger at work: its chain of lines, its records
// and indexes, the journal replayed, the packages that wait, and the folders
// that are claimed or kept.
//
// It sends nothing, and changes nothing but what an entry says of its kept
// folder. It works in short transactions with pauses, so that it never takes
// the disk from the work. The ledger changes meanwhile, so two reads may be of
// different moments: what they seem to find counts only when a second check
// finds it too.
//
// A verification without a finding leaves a checkpoint in the state directory,
// from which the next one may go on. It is derived and never a source of truth:
// one that is missing, damaged or of another ledger, program or past only means
// that everything is read. After a crash the next start begins the check anew.
package selfcheck
