// Package token turns text into token ids and back, and writes conversations in the form a chat
// model was trained on (spec engine.md 2, spec room.md 5.10, 6.6 and 6.7).
//
// # Text to ids
//
//	text ─► pieces (split.go) ─► bytes ─► merges by rank (bpe.go) ─► ids
//
// A text is cut into pieces by the rule the file names (`qwen2` or `qwen35`); pieces put together are
// the text again, byte for byte. Within a piece the neighbouring pair of lowest rank is merged, the
// leftmost on a tie, until none is left. Every byte is a token of its own, so any string has ids,
// also one that is not UTF-8: a broken byte counts as a symbol when the text is cut and stays
// itself as a byte.
//
// Special tokens are those of control and user-defined type. Encode never produces one, whatever the
// text spells: New refuses a vocabulary in which merging could. Only EncodeSpecial and the Special
// segments of a rendered conversation do. So text from people and from clients can't close a turn.
//
// # Ids to text
//
// Only tokens of normal type give text. A token's bytes may end inside a character; a Stream keeps
// them until the character is whole. A sequence that can't become a character any more is one
// U+FFFD. A token without text ends a pending sequence, so at most three ids are ever waiting.
//
// # Conversations
//
// Render and RenderAsk give segments: a special token, a text that goes through the tokenizer in one
// call of its own, or ids copied as they are. The bounds of these calls matter, because a text cut
// elsewhere has other ids, and then nothing computed earlier can be used again.
//
// # Limits and ownership
//
// A Tokenizer is safe for several goroutines at once; it remembers the ids of recent pieces, at most
// 2 x 8192 pieces of at most 64 bytes. A Stream belongs to one goroutine. Encode, for n bytes in one
// piece, takes O(n log n) time and O(n) memory. Nothing here starts a goroutine or reads a file.
package token
