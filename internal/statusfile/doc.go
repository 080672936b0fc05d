// Package statusfile writes _STATUS.txt into each drop folder, and once the template beside it: what people who drop folders should know,
// in their words.
//
// It decides nothing. It reads the ledger, the watcher and the open circuit
// breakers; it changes no entry, and nothing waits for it. If a drop folder
// cannot be worked in, it writes nothing: the folder may be another one.
//
// A file is written whole and renamed. After a crash the last one stays, with its time, until the next start has counted what
// happened earlier that day and writes the next one.
package statusfile
