// The entry point shared by every test program.
#define BOOST_TEST_MODULE cedar
#include <boost/test/unit_test.hpp>
