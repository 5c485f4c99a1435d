// A library that has nothing to do with the program.
extern "C" int nothing_of_cedar() {
  return 0;
}
