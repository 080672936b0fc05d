// Package selfcheck checks a ledger at work: its chain of lines, its records
// and indexes, the journal replayed, the packages that wait, and the folders
// that are claimed or kept.
//
// It sends nothing, and changes nothing but what an entry says of its kept
// folder. Of a ledger at work it checks a copy of one moment, in a child process,
// because damage may end the process that reads it. Files are read with pauses,
// so that it never takes the disk from the work.
//
// A verification without a finding leaves a checkpoint in the state directory,
// from which the next one may go on. It is derived and never a source of truth:
// one that is missing, damaged or of another ledger, program or past only means
// that everything is read. After a crash the next start begins the check anew.
package selfcheck
