// Package sessiontest runs whole rooms inside one test: a network of fake meshes, an engine that computes a tiny
// made-up model, and expectations on events.
//
// The network delivers at once, in the sender's goroutine, in order, and values look as they do after the wire (whole
// numbers are int64). Nothing is lost unless the test cuts it.
//
// The engine's model is arithmetic on small whole numbers that half precision holds exactly, so a room of any split
// gives the same bits as one device. A skipped or repeated layer, columns out of order, a lost frame or a wrong
// position change everything that comes after.
//
// Rooms are best run in a testing/synctest bubble: then timers cost nothing and the absence of an event can be told.
package sessiontest
