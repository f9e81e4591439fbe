#pragma once
// Pages of code and constants that starting needed and running does not: this program is one for all commands, and the agent runs
// for months on machines whose memory is others'.

namespace flopsight::app {

// Lets go of every resident page that is a plain copy of a file; what is used again is read from the page cache again. Mappings that
// this process could have written, or that have a page of its own (relocated constants), stay. Where the system does not say, nothing.
void let_go_of_code_pages();

}  // namespace flopsight::app
