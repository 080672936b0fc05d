// Package expected reads a list of the documents that somebody expects in the archive, such as an export of a bookkeeping program,
// from CSV or XLSX: the number of each document and, where the list has them, its sender, date, amount and currency.
//
// It never guesses: a list whose column of numbers is not known, an amount or a date that can be read in two ways, and a text that
// is none, are errors that name the row and say what to do. It opens no file and writes none, so a crash leaves nothing.
package expected
