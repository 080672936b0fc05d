// Package packager turns one dropped folder, the files of an invoice and their
// sidecar, into a valid archive.Document and one sealed ZIP. The same folder
// under the same rules gives the same document, the same digests and, with the
// same compressor, the same bytes.
//
// A single PDF of a drop that takes those is copied byte for byte instead
// ([BuildPDF]). A folder for the business network has a document in the place
// of the sidecar, which is the first entry of its ZIP ([BuildNetwork]). What is
// said here holds for both as well.
//
// It returns three kinds of errors. A [*Refusal] is the fault of the folder: it
// is worded for the person who dropped it and lists all that is wrong.
// [archive.ErrChanged] says that somebody is still writing, so nothing is wrong
// yet. Every other error is the fault of the environment (no right, no space, a
// broken disk) and never counts against the document.
//
// The package never changes, moves or removes what people dropped. It never
// follows a link, never reads through a mount, never opens anything but a
// regular file, and never holds more than 1 MiB of an invoice's file in memory,
// or a document of at most 8 MiB. The text of its errors holds no value of the
// sidecar, except [Refusal.Text], which goes back into the folder.
//
// A ZIP is made in one pass over each file. Parts that cannot shrink, because a
// compressor wrote them, are recognised by their content and stored. Then the
// ZIP is read back: no ZIP is sealed before SHA-256 proved that its entries are
// the files. The headers around the entries are compared with what was written
// by CRC-32 alone. The ZIP is not synced before it is read back, so the bytes
// that are read may come from the kernel's cache.
//
// After a crash there is either no ZIP under the given name, or a whole one
// that was read back and compared. A temporary file (".<name>.tmp") may stay
// beside it; the next build of that name removes it.
package packager
