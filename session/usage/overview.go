package usage

// Overview is what `pooled` and `pooled help` print: at most 20 lines of at most 80 columns (spec cli.md 1.2).
const Overview = `pooled - run one language model on the GPUs of several computers

  pooled demo                     a whole room here, with a tiny model
  pooled signal                   introduce the devices of this computer's rooms
  pooled host mini                open a room and lend it this computer's GPU
  pooled join 4TK-G9P             lend this computer's GPU to a room
  pooled chat 4TK-G9P             talk to a room's model
  pooled chat 4TK-G9P "Hello?"    ask once; the answer goes to standard output
  pooled list                     the models, and which are on this computer
  pooled bench mini               measure how fast this computer runs a model

'pooled COMMAND --help' has the options of a command.
`
