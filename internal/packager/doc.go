// Package packager turns one dropped folder, the files of an invoice and their
// sidecar, into a valid archive.Document and one sealed ZIP. The same folder
// under the same rules gives the same document, the same digests and, with the
// same compressor, the same bytes.
//
// It speaks with three voices. A Refusal is the folder's own fault and is worded
// for the person who dropped it, with everything that is wrong at once.
// ErrChanged says that somebody is still writing, so that nothing is wrong yet.
// Every other error is the environment's (no right, no space, a broken disk) and
// never counts against the document.
//
// It never changes, moves or removes what people dropped, never follows a link,
// never reads through a mount, never opens what is not a regular file, and never holds more than 1 MiB of a
// file in memory. Nothing it returns as an error's text holds a value of the
// sidecar: those stand in Refusal.Text alone, which goes back to the folder.
//
// A ZIP is made in one pass over each file, and what cannot shrink is not tried
// for long: runs of bytes that went through a compressor before, which their
// content tells, are stored between what is compressed. It is then read back: no
// ZIP is sealed whose entries were not found, by SHA-256, to be the files. What
// stands around them, the headers, is held by CRC-32 alone against what was
// written. Nothing is synced before, so what is read may come from the kernel's
// cache.
//
// After a crash there is either no ZIP under the given path or a whole one that
// was read back and compared; a leftover ".part" beside it is replaced by the
// next Build.
package packager
