#include "net/handler_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace flopsight::net {
namespace {

TEST(HandlerPool, takes_as_many_as_threads_and_queue_hold) {
  HandlerPool pool(2, 3);
  std::promise<void> open;
  std::shared_future<void> opened(open.get_future());
  std::atomic<int> done = 0;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(pool.submit([&done, opened] {
      opened.wait();
      ++done;
    })) << i;
  }
  EXPECT_FALSE(pool.submit([&done] { ++done; }));
  open.set_value();
  pool.join();
  EXPECT_EQ(done, 5);
  EXPECT_FALSE(pool.submit([] {}));
}

TEST(HandlerPool, without_a_queue_a_free_thread_still_works) {
  HandlerPool pool(1, 0);
  std::promise<void> open;
  std::shared_future<void> opened(open.get_future());
  EXPECT_TRUE(pool.submit([opened] { opened.wait(); }));
  EXPECT_FALSE(pool.submit([] {}));
  open.set_value();
}

TEST(HandlerPool, has_at_least_one_thread) {
  std::promise<void> done;
  HandlerPool pool(0, 1);
  EXPECT_TRUE(pool.submit([&] { done.set_value(); }));
  done.get_future().wait();
}

}  // namespace
}  // namespace flopsight::net
