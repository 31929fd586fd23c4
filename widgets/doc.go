// Package widgets holds the terminal primitives of the console: header, pane, roster, layer map, transcript, log,
// prompt, gauge, lines, strip and key line. It knows nothing of rooms, peers or models.
//
// A widget is a tview primitive with SetModel(plain struct). It keeps scroll position, focus and (the prompt) the text
// being typed, nothing else; what it was told last is what it draws. Reports go out through OnX functions that are
// called inside the event loop. Widgets are not safe for concurrent use: everything happens in the event loop.
//
// Text. Everything drawn is a [Text]. A Text is a constant of the program or the result of [Safe] or [SafeLines], which
// drop control characters, terminal escapes, bidirectional overrides and endless combining marks and cap the length.
// Widgets put grapheme clusters into cells themselves and hand no string to a tview function that reads style tags, so
// "[red]" in a name is five visible characters; [Text.Tagged] is for a primitive that does read them.
//
// Widths are cells, measured by grapheme cluster (as tcell does). Text that does not fit is cut between clusters and
// ends in "…". Colour only repeats what words and marks say: [Look] turns roles into styles and, on a terminal without
// UTF-8, drawing marks into ASCII.
//
// Caps: a transcript keeps MaxEntries entries, a log MaxLogLines lines, a prompt MaxPrompt bytes and MaxHistory lines
// of history.
package widgets
